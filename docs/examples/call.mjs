// Calls the API, and retries after 429, 5xx and missing or unreadable responses, so a POST needs an Idempotency-Key.
import { setTimeout as sleep } from "node:timers/promises";
import { parse, parseNumberAndBigInt } from "lossless-json";

export const BASE_URL = process.env.BASE_URL.replace(/\/+$/, "");
const { API_KEY } = process.env;

export async function call(url, options = {}) {
  if (new URL(url).origin !== new URL(BASE_URL).origin) throw new Error(`${url} is not at BASE_URL: the key isn't sent there`);
  const headers = { Authorization: `Bearer ${API_KEY}`, ...options.headers };
  for (let attempt = 1; ; attempt++) {
    let error;
    let isTemporary = true;
    let retryAfter = 0;
    try {
      // The service sends no redirects, and answers within 29 seconds.
      const limits = { redirect: "manual", signal: AbortSignal.timeout(35_000) };
      const response = await fetch(url, { ...options, headers, ...limits });
      const text = await response.text();
      if (response.ok) {
        const next = /<([^>]+)>; rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
        return { body: parse(text, null, parseNumberAndBigInt), next: next && new URL(next, url).href };
      }
      error = new Error(`${response.status} ${text} (request ${response.headers.get("x-amzn-RequestId")})`);
      isTemporary = response.status === 429 || response.status >= 500;
      retryAfter = seconds(response.headers.get("Retry-After") ?? "0");
    } catch (noResponse) {
      error = noResponse;
    }
    if (!isTemporary || attempt === 7 || retryAfter > 60) throw error;
    await sleep(1000 * (retryAfter + (1 + Math.random()) * 0.1 * 2 ** attempt));
  }
}

// Turns a Retry-After (seconds or a date) into seconds. A date is in UTC, even if it does not say so.
function seconds(retryAfter) {
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter);
  const date = Date.parse(`${retryAfter.replace(/ (GMT|-0000)$/, "")} GMT`);
  return Math.max(0, (date - Date.now()) / 1000) || 0;
}
