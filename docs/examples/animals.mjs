// Adds a pending animal, and lists all pending animals.
import { stringify } from "lossless-json";
import { BASE_URL, call } from "./call.mjs";

const { body: created } = await call(`${BASE_URL}/pets`, {
  method: "POST",
  headers: { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() },
  body: stringify({ name: "Rex", categoryId: 9007199254740993n, status: "pending" }),
});
console.log(created.categoryId); // 9007199254740993n; response.json() would have made it 9007199254740992

for (let url = `${BASE_URL}/pets?status=pending&limit=100`; url; ) {
  const { body, next } = await call(url);
  for (const pet of body) console.log(`${pet.id} ${pet.name}`);
  url = next;
}
