/** Checks the API page on a desktop and a phone, in light and dark colors: node page.mjs URL CHROMIUM API_KEY. */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const [url, executablePath, apiKey] = process.argv.slice(2);
const SCREENS = { desktop: { width: 1280, height: 900 }, phone: { width: 320, height: 844 } };
const LIST = "#operations-Pets-listPets";
const CREATE = "#operations-Pets-createPet";
const AXE = fileURLToPath(import.meta.resolve("axe-core"));

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const [screen, viewport] of Object.entries(SCREENS))
  for (const colorScheme of ["light", "dark"]) {
    const page = await browser.newPage({ viewport, colorScheme, isMobile: screen === "phone" });
    await page.goto(`${url}#key=${apiKey}`); // the URL that make run prints
    const first = await page.locator(LIST).boundingBox();
    assert(first.y + first.height <= viewport.height, "the first operation is visible without scrolling");
    assert(!page.url().includes(apiKey), "the key is not in the address");
    await page.click(`${LIST} .opblock-summary-control`);
    await page.waitForSelector(`${LIST} .responses-table`);
    await page.click(".execute");
    const status = await page.textContent(".live-responses-table .response .response-col_status");
    assert.equal(parseInt(status), 200);
    const { height } = await page.locator(LIST).boundingBox();
    if (screen === "desktop") assert(height <= 3100, `an open operation is ${height} px high`);
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
    await page.addScriptTag({ path: AXE });
    const { violations } = await page.evaluate(() => axe.run({ runOnly: ["color-contrast"] }));
    assert.deepEqual(violations, [], "every text has enough contrast");
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
