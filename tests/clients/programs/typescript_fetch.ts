/** Use every operation through openapi-generator's typescript-fetch client: BASE_URL SCRIPTED_ORIGIN NAMES, $API_KEY. */
import { randomUUID } from "node:crypto";
import { Configuration, type Pet, PetsApi, ResponseError } from "./typescript-fetch/index.js";

const [baseUrl, scripted, given] = process.argv.slice(2) as [string, string, string];
const connect = (basePath = baseUrl, accessToken = process.env["API_KEY"] ?? "") =>
  new PetsApi(new Configuration({ basePath, accessToken }));
const values = (...pets: Pet[]) => pets.map((pet) => [pet.id, pet.name, pet.categoryId]);

const client = connect();
const errors: Record<number, string | null> = {};
async function note(call: Promise<unknown>): Promise<void> {
  const error = await call.catch((reason: unknown) => reason);
  if (!(error instanceof ResponseError)) throw error;
  errors[error.response.status] = (await error.response.json()).code ?? null;
}
const create = (name: string, categoryId: number, idempotencyKey?: string, to = client) =>
  to.createPet({ newPet: { name, categoryId }, idempotencyKey });

async function* pages(): AsyncGenerator<Pet> {
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const page = await client.listPetsRaw({ limit: 2, cursor });
    yield* await page.value();
    const url = /<([^>]+)>; *rel="next"/.exec(page.raw.headers.get("Link") ?? "")?.[1];
    cursor = url ? new URL(url).searchParams.get("cursor") ?? undefined : undefined;
  }
}

const created: Pet[] = [];
for (const name of JSON.parse(given)) created.push(await create(name, 2 ** 53));
const key = randomUUID();
await create("Mia", 1, key);
await note(create("Leo", 1, key));
await note(client.listPets({ cursor: "made-up" }));
await note(connect(baseUrl, "x").listPets());
await note(create("Rex", 1, undefined, connect(`${scripted}/413`)));
for (const status of [429, 503]) await note(connect(`${scripted}/${status}`).listPets());
const listed: Pet[] = [];
for await (const pet of pages()) listed.push(pet);
const result = {
  created: values(...created),
  listed: values(...listed),
  newer: values(...(await connect(`${scripted}/newer`).listPets())),
  errors,
};
console.log(JSON.stringify(result));
