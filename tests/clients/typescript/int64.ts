/**
 * 64-bit integers in JavaScript: what the usual way loses, and a way that loses nothing.
 *
 * `node int64.js BASE_URL` with $API_KEY.
 */
import assert from "node:assert/strict";
import { parse, parseNumberAndBigInt, stringify } from "lossless-json";
import createClient from "openapi-fetch";
import type * as numbers from "./animal-store.js";
import type * as bigints from "./animal-store-bigint.js";

const baseUrl = process.argv[2]!;
const headers = { Authorization: `Bearer ${process.env["API_KEY"]}` };
const beyond = 2n ** 53n + 1n;

// Every integer arrives as a bigint, every other number as a number.
const exact = <T>(text: string): T => parse(text, null, parseNumberAndBigInt) as T;

const client = createClient<bigints.paths>({
  baseUrl,
  headers,
  bodySerializer: (body) => stringify(body) ?? "",
});
const created = await client.POST("/pets", { body: { name: "Rex", categoryId: beyond }, parseAs: "text" });
assert(created.data, created.error?.message);
const pet = exact<bigints.components["schemas"]["Pet"]>(created.data);
assert.equal(pet.categoryId, 9007199254740993n);
const read = await client.GET("/pets/{petId}", { params: { path: { petId: pet.id } }, parseAs: "text" });
assert.deepEqual(exact(read.data ?? ""), pet);

// The usual way compiles, and answers with another category without a word.
const usual = createClient<numbers.paths>({ baseUrl, headers });
const rounded = await usual.GET("/pets/{petId}", { params: { path: { petId: Number(pet.id) } } });
assert.equal(rounded.data?.categoryId, 9007199254740992);
console.log("done");
