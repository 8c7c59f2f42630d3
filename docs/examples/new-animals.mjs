// Prints each animal once, and then new ones as they appear (see "Looking for new animals" in openapi.yaml).
import { setTimeout as sleep } from "node:timers/promises";
import { BASE_URL, call } from "./call.mjs";

const known = new Set();
let start = `${BASE_URL}/pets?limit=100`; // the first page of this round
let nextStart = start;
for (;;) {
  let lastPage;
  for (let url = start; url; ) {
    const { body, next } = await call(url);
    for (const pet of body) if (!known.has(pet.id)) console.log(`${pet.id} ${pet.name}`);
    for (const pet of body) known.add(pet.id);
    lastPage = url;
    url = next;
  }
  [start, nextStart] = [nextStart, lastPage]; // round 3 starts where round 1 ended
  await sleep(30_000); // an animal may appear this late
}
