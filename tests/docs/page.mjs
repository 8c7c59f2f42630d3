/** Checks the API page on a desktop and a phone, in light and dark colors: node page.mjs URL CHROMIUM API_KEY. */
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const [url, executablePath, apiKey] = process.argv.slice(2);
const SCREENS = { desktop: { width: 1280, height: 900 }, phone: { width: 320, height: 844 } };
const LIST = "#operations-Pets-listPets";
const CREATE = "#operations-Pets-createPet";

/** Returns the texts whose contrast with their background is under 4.5 : 1 (WCAG 2.2, 1.4.3). Runs in the page. */
function faintTexts() {
  const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (rgb) =>
    [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
      const part = rgb[i] / 255;
      return sum + weight * (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    }, 0);
  const over = ([r, g, b, alpha = 1], below) => [r, g, b].map((part, i) => part * alpha + below[i] * (1 - alpha));
  const background = (element) =>
    element ? over(parse(getComputedStyle(element).backgroundColor), background(element.parentElement)) : [255, 255, 255];
  const faint = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const text = texts.currentNode.data.trim();
    if (!text || !element.checkVisibility() || element.closest("script, style, option, svg")) continue;
    const below = background(element);
    const [a, b] = [luminance(over(parse(getComputedStyle(element).color), below)), luminance(below)];
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5) faint.add(`${element.className}: ${text.slice(0, 40)}`);
  }
  return [...faint];
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const [screen, viewport] of Object.entries(SCREENS))
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ viewport, colorScheme, isMobile: screen === "phone" });
    await page.goto(`${url}#key=${apiKey}`); // the URL that make run prints
    const isVisible = async (selector) => {
      const box = await page.locator(selector).first().boundingBox();
      return Boolean(box) && box.y + box.height <= viewport.height;
    };
    await page.waitForSelector(LIST);
    assert(await isVisible(LIST), "the first operation is visible without scrolling");
    assert(!page.url().includes(apiKey), "the key is not in the address");
    await page.click(`${LIST} .opblock-summary-control`);
    await page.waitForSelector(`${LIST} .responses-table`);
    assert(await isVisible(".execute"), "the button that sends a request is visible without scrolling");
    await page.click(".execute");
    const status = await page.textContent(".live-responses-table .response .response-col_status");
    assert.equal(parseInt(status), 200);
    assert.equal(await page.textContent(".announcement"), "Response 200");
    assert(await isVisible(".live-responses-table .responses-header"), "the response comes into view");
    const { height } = await page.locator(LIST).boundingBox();
    if (screen === "desktop") assert(height <= 3100, `an open operation is ${height} px high`);
    await page.fill(`${LIST} input[placeholder=limit]`, "101");
    await page.waitForTimeout(500); // Swagger UI waits for more keys
    await page.click(".execute");
    assert.equal(await page.textContent(".announcement"), "Not sent: a value is not allowed.");
    assert.equal(await page.locator(".live-responses-table").count(), 0, "no old response stands below a refused value");
    await page.fill(`${LIST} input[placeholder=limit]`, "20");
    await page.waitForTimeout(500);
    await page.click(".execute");
    await page.click(".request-snippets .btn >> text=Python");
    const snippet = await page.locator(".request-snippets code").textContent();
    assert(snippet.includes(`"Bearer ${apiKey}"`), "the Python snippet has the key");
    await page.click(`${CREATE} .opblock-summary-control`);
    await page.fill(`${CREATE} textarea.body-param__text`, '{"name": "Big", "categoryId": 9007199254740993}');
    await page.click(`${CREATE} .execute`);
    const created = await page.textContent(`${CREATE} .live-responses-table .response .response-col_description`);
    assert(created.includes('"categoryId": 9007199254740993'), "a number beyond 2^53 is shown exactly");
    await page.click(".models button");
    await page.click(".models .json-schema-2020-12-expand-deep-button");
    const schemas = await page.textContent(".models");
    assert(!/\d{13}000\b/.test(schemas), "no bound of a number is rounded");
    for (const closed of await page.$$(".opblock:not(.is-open) .opblock-summary-control")) await closed.click();
    await page.waitForTimeout(500); // until the colors have faded in
    assert.deepEqual(await page.evaluate(faintTexts), [], "every text has enough contrast");
    assert.equal(await page.locator(".errors-wrapper").count(), 0, "Swagger UI finds no errors in the document");
    assert(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `the page is not wider than a ${screen}`);
    await page.close();
  }

const page = await browser.newPage();
await page.goto(url);
await page.click(".scheme-container .authorize");
await page.fill(".modal-ux input", `Bearer ${apiKey}`);
await page.click(".modal-ux .authorize");
await page.click(".modal-ux .btn-done");
assert(await page.locator("#unauthorized").isHidden(), "nobody is told to authorize again");
await page.click(`${LIST} .opblock-summary-control`);
await page.click(".execute");
const status = await page.textContent(".live-responses-table .response .response-col_status");
assert.equal(parseInt(status), 200, "a key that is pasted with the word Bearer is accepted");
await browser.close();
