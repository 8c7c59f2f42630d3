/** Uses every operation through the generated types: `node journey.js BASE_URL FAILING_ORIGIN` with $API_KEY. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import createClient, { type Client } from "openapi-fetch";
import { nextCursor } from "./links.js";
import type { components, paths } from "./animal-store.js";

type Pet = components["schemas"]["Pet"];
type PetStatus = components["schemas"]["PetStatus"];
type ApiError = components["schemas"]["Error"];

const FAILURES = {
  429: "too_many_requests",
  500: "internal_error",
  502: "internal_error",
  503: "service_unavailable",
  504: "timeout",
} as const;

const [baseUrl, failingOrigin] = process.argv.slice(2) as [string, string];
const key = process.env["API_KEY"] ?? "";
const connect = (url: string, apiKey: string) =>
  createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${apiKey}` } });

const client = connect(baseUrl, key);
const created: Pet[] = [];
for (let number = 0; number < 5; number++) created.push(await create(number));
await checkListing();
await checkReading(created[0]!);
await checkRepetition();
await checkErrors();
await checkUnauthorized();
await checkFailures();
console.log("done");

async function create(number: number): Promise<Pet> {
  const body = { name: `Zoë ${number}`, categoryId: number, ...(number % 2 ? { status: "sold" as const } : {}) };
  const { data, error, response } = await client.POST("/pets", { body });
  assert(data, error?.message);
  assert.equal(response.status, 201);
  assert.deepEqual(data, { id: data.id, ...body });
  return data;
}

async function* pages(limit: number, status?: PetStatus): AsyncGenerator<Pet[]> {
  let cursor: string | undefined;
  do {
    const query = { limit, ...(status && { status }), ...(cursor && { cursor }) };
    const { data, error, response } = await client.GET("/pets", { params: { query } });
    assert(data, error?.message);
    yield data;
    cursor = nextCursor(response);
  } while (cursor);
}

async function checkListing(): Promise<void> {
  const known = new Set(created.map((pet) => pet.id));
  const listed: Pet[] = [];
  let count = 0;
  for await (const page of pages(2)) {
    count += 1;
    listed.push(...page);
  }
  assert(count > 2, "there was no next page to follow");
  assert.deepEqual(listed.filter((pet) => known.has(pet.id)), created);

  const sold: Pet[] = [];
  for await (const page of pages(1, "sold")) sold.push(...page);
  assert(sold.every((pet) => pet.status === "sold"));
  assert.deepEqual(sold.filter((pet) => known.has(pet.id)), created.filter((pet) => pet.status));
}

async function checkReading(pet: Pet): Promise<void> {
  const { data, response } = await client.GET("/pets/{petId}", { params: { path: { petId: pet.id } } });
  assert.deepEqual(data, pet);
  assert.equal(response.headers.get("Sunset"), "Thu, 05 Dec 2030 00:00:00 GMT");
}

async function checkRepetition(): Promise<void> {
  const params = { header: { "Idempotency-Key": randomUUID() } };
  const first = await client.POST("/pets", { params, body: { name: "Mia", categoryId: 1 } });
  const again = await client.POST("/pets", { params, body: { name: "Mia", categoryId: 1 } });
  assert.deepEqual(again.data, first.data);
  assert.equal(again.response.headers.get("Idempotency-Replayed"), "true");
  const other = await client.POST("/pets", { params, body: { name: "Leo", categoryId: 1 } });
  assertError(other, 422, "idempotency_key_reused");
}

async function checkErrors(): Promise<void> {
  assertError(await client.GET("/pets", { params: { query: { limit: 101 } } }), 400, "invalid_request");
  assertError(await client.GET("/pets", { params: { query: { cursor: "made-up" } } }), 400, "invalid_request");
  assertError(await client.POST("/pets", { body: { name: " ", categoryId: 1 } }), 400, "invalid_request");
  assertError(await client.GET("/pets/{petId}", { params: { path: { petId: 2 ** 52 } } }), 404, "not_found");
  const huge = { name: "x".repeat(11 * 1024 * 1024), categoryId: 1 };
  assertError(await client.POST("/pets", { body: huge }), 413, "payload_too_large");
  const plain = { body: { name: "Rex", categoryId: 1 }, headers: { "Content-Type": "text/plain" } };
  assertError(await client.POST("/pets", plain), 415, "unsupported_media_type");
}

async function checkUnauthorized(): Promise<void> {
  const stranger: Client<paths> = connect(baseUrl, key.slice(0, -1));
  assertError(await stranger.GET("/pets"), 401, "unauthorized");
  assertError(await stranger.POST("/pets", { body: { name: "Rex", categoryId: 1 } }), 401, "unauthorized");
  assertError(await stranger.GET("/pets/{petId}", { params: { path: { petId: 1 } } }), 401, "unauthorized");
}

async function checkFailures(): Promise<void> {
  for (const [status, code] of Object.entries(FAILURES)) {
    const answer = await connect(`${failingOrigin}/${status}`, key).GET("/pets");
    assertError(answer, Number(status), code);
    assert.equal(answer.response.headers.has("Retry-After"), ["429", "503", "504"].includes(status));
  }
}

function assertError(
  { error, response }: { error?: ApiError; response: Response },
  status: number,
  code: ApiError["code"],
): void {
  assert(error, `no error, but ${response.status}`);
  assert.deepEqual([response.status, error.status, error.code], [status, status, code]);
  assert(error.message);
}
