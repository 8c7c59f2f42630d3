/** Use every operation with openapi-typescript's types and openapi-fetch: BASE_URL SCRIPTED_ORIGIN NAMES, $API_KEY. */
import { randomUUID } from "node:crypto";
import { parse, parseNumberAndBigInt, stringify } from "lossless-json";
import createClient from "openapi-fetch";
import type { components, paths } from "./animal-store.js";

type Pet = components["schemas"]["Pet"];
type ApiError = components["schemas"]["IncompleteError"];

const [baseUrl, scripted, given] = process.argv.slice(2) as [string, string, string];
const connect = (url = baseUrl, key = process.env["API_KEY"]) =>
  createClient<paths>({
    baseUrl: url,
    headers: { Authorization: `Bearer ${key}` },
    bodySerializer: (body) => stringify(body) ?? "",
  });
// Every integer arrives as a bigint: JSON.parse would round those beyond 2^53.
const exact = <T>(text: string | undefined): T => parse(text ?? "", null, parseNumberAndBigInt) as T;
const values = (...pets: Pet[]) => pets.map((pet) => [pet.id, pet.name, pet.categoryId]);

const client = connect();
const errors: Record<number, string | null> = {};
function note({ error, response }: { error?: ApiError; response: Response }): void {
  errors[response.status] = error?.code ?? null;
}
const create = (name: string, categoryId: bigint, options = {}, to = client) =>
  to.POST("/pets", { body: { name, categoryId }, parseAs: "text", ...options });
const list = (query = {}, from = client) => from.GET("/pets", { params: { query }, parseAs: "text" });

async function* pages(): AsyncGenerator<Pet> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { data, response } = await list({ limit: 2, ...(cursor && { cursor }) });
    yield* exact<Pet[]>(data);
    const url = /<([^>]+)>; *rel="next"/.exec(response.headers.get("Link") ?? "")?.[1];
    cursor = url ? new URL(url).searchParams.get("cursor") : null;
  }
}

const created: Pet[] = [];
for (const name of JSON.parse(given)) created.push(exact((await create(name, 2n ** 53n + 1n)).data));
const params = { params: { header: { "Idempotency-Key": randomUUID() } } };
await create("Mia", 1n, params);
note(await create("Leo", 1n, params));
note(await list({ cursor: "made-up" }));
note(await list({}, connect(baseUrl, "x")));
note(await create("Rex", 1n, {}, connect(`${scripted}/413`)));
for (const status of [429, 503]) note(await list({}, connect(`${scripted}/${status}`)));
const listed: Pet[] = [];
for await (const pet of pages()) listed.push(pet);
const result = {
  created: values(...created),
  listed: values(...listed),
  newer: values(...exact<Pet[]>((await list({}, connect(`${scripted}/newer`))).data)),
  errors,
};
console.log(stringify(result));
