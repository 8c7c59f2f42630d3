// Adds an animal with exact 64-bit integers, and lists the first page.
import { parse, parseNumberAndBigInt, stringify } from "lossless-json";
import createClient from "openapi-fetch";
import type { paths } from "./animal-store.js";

const client = createClient<paths>({
  baseUrl: process.env["BASE_URL"] ?? "",
  headers: { Authorization: `Bearer ${process.env["API_KEY"]}` },
  bodySerializer: (body) => stringify(body) ?? "",
});

const created = await client.POST("/pets", {
  params: { header: { "Idempotency-Key": crypto.randomUUID() } },
  body: { name: "Rex", categoryId: 9007199254740993n },
  parseAs: "text", // JSON.parse would round integers beyond 2^53
});
if (created.error) throw new Error(`${created.response.status} ${created.error.code}`);
console.log(parse(created.data, null, parseNumberAndBigInt));

const listed = await client.GET("/pets", { params: { query: { limit: 2 } }, parseAs: "text" });
if (listed.error) throw new Error(`${listed.response.status} ${listed.error.code}`);
console.log(parse(listed.data, null, parseNumberAndBigInt), listed.response.headers.get("Link"));
