"""The API page in a real browser: every operation tried, by mouse and by keyboard, on a desk and on a phone."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.processes import COMMAND, RunningService, run
from tools import ROOT

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1280,1000"),
)
OPERATIONS = {"listPets": "200", "createPet": "201", "getPet": "200"}
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
PATIENCE_S = 20


class Page:
    """A browser with the page open."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get(url)
        self.element(".opblock")

    def element(self, selector: str) -> WebElement:
        """Wait for an element that can be seen."""

        def visible(driver: webdriver.Chrome) -> WebElement | Literal[False]:
            found = driver.find_elements(By.CSS_SELECTOR, selector)
            return next((element for element in found if element.is_displayed()), False)

        return WebDriverWait(self.driver, PATIENCE_S).until(visible, f"{selector} does not appear")

    def click(self, selector: str) -> None:
        element = self.element(selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, selector: str) -> None:
        """Press Tab until an element has the focus, and see that this can be seen."""
        for _ in range(80):
            self.press(Keys.TAB)
            element = self.driver.switch_to.active_element
            if self.driver.execute_script("return arguments[0].matches(arguments[1])", element, selector):
                assert element.value_of_css_property("outline-style") != "none", f"focus on {selector} cannot be seen"
                return
        raise AssertionError(f"{selector} cannot be reached by the Tab key")

    def authorize(self, api_key: str) -> None:
        self.click(".btn.authorize")
        self.element(".auth-container input").send_keys(api_key)
        self.click(".auth-btn-wrapper .authorize")
        self.click(".auth-btn-wrapper .btn-done")

    def emulate(self, *, dark: bool, phone: bool) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        if phone:
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)

    def brightness(self) -> float:
        """Of the page's background, 0 to 255."""
        color: str = self.driver.execute_script("return getComputedStyle(document.querySelector('.swagger-ui')).color")
        return sum(float(part) for part in color[color.index("(") + 1 : -1].split(",")[:3]) / 3


def operation(name: str) -> str:
    return f"#operations-Pets-{name}"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A browser of its own."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    chromedriver = shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("Chromium and chromedriver are not installed")
    options = Options()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'browser'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(chromedriver))
    try:
        yield Page(driver)
    finally:
        driver.quit()


@pytest.fixture
def docs_url(service: RunningService) -> str:
    return service.base_url.removesuffix("/v1") + "/docs"


def test_every_operation_answers_its_example(page: Page, docs_url: str, service: RunningService) -> None:
    page.open(docs_url)
    page.authorize(service.api_key)

    for name in ("createPet", "listPets", "getPet"):
        page.click(f"{operation(name)} .opblock-summary-control")
        page.click(f"{operation(name)} .execute")
        status = page.element(f"{operation(name)} .live-responses-table .response .response-col_status")

        assert status.text.split()[0] == OPERATIONS[name], status.text


def test_without_the_key_the_answer_is_explained(page: Page, docs_url: str) -> None:
    page.open(docs_url)

    page.click(f"{operation('listPets')} .opblock-summary-control")
    page.click(f"{operation('listPets')} .execute")

    answer = page.element(f"{operation('listPets')} .live-responses-table .response")
    assert answer.text.startswith("401")
    assert '"unauthorized"' in answer.text


def test_keyboard_alone(page: Page, docs_url: str, service: RunningService) -> None:
    page.open(docs_url)

    page.tab_to(".btn.authorize")
    page.press(Keys.ENTER)
    page.tab_to(".auth-container input")
    page.press(service.api_key, Keys.ENTER)
    page.tab_to(".btn-done")
    page.press(Keys.ENTER)
    page.tab_to(f"{operation('listPets')} .opblock-summary-control")
    page.press(Keys.ENTER)
    page.tab_to(f"{operation('listPets')} .execute")
    page.press(Keys.ENTER)

    status = page.element(f"{operation('listPets')} .live-responses-table .response .response-col_status")
    assert status.text.split()[0] == "200"


def test_the_deprecated_operation_is_marked_with_its_date(page: Page, docs_url: str) -> None:
    page.open(docs_url)

    deprecated = page.element(".opblock-deprecated")

    assert deprecated.get_attribute("id") == "operations-Pets-getPet"
    assert "5 December 2030" in deprecated.text


@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_fits_the_screen_and_follows_its_colors(page: Page, docs_url: str, *, dark: bool, phone: bool) -> None:
    page.emulate(dark=dark, phone=phone)
    page.open(docs_url)
    for name in OPERATIONS:
        page.click(f"{operation(name)} .opblock-summary-control")
        page.element(f"{operation(name)} .responses-table")

    width, room = page.driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")

    assert width <= room
    assert (page.brightness() > 128) == dark, "light text belongs on a dark page, dark text on a light one"


def test_the_published_copy_works_as_a_file(page: Page, tmp_path: Path) -> None:
    run(*COMMAND, "docs", tmp_path / "docs", cwd=ROOT)

    page.open((tmp_path / "docs/index.html").as_uri())
    page.click(f"{operation('getPet')} .opblock-summary-control")
    page.element(f"{operation('getPet')} .responses-table")

    assert not page.driver.find_elements(By.CSS_SELECTOR, ".execute, .btn.try-out__btn")
    loaded: list[str] = page.driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert all(url.startswith("file:") for url in loaded), loaded
    assert (tmp_path / "docs/openapi.yaml").read_bytes() == (ROOT / "openapi.yaml").read_bytes()
