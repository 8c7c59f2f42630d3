// Makes TypeScript types in which 64-bit integers are bigint. Usage: node bigint-types.mjs openapi.yaml animal-store.ts
import { writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const [document, output] = process.argv.slice(2);
const types = await openapiTS(pathToFileURL(document), {
  transform: (schema) =>
    schema.format === "int64" ? ts.factory.createKeywordTypeNode(ts.SyntaxKind.BigIntKeyword) : undefined,
});
writeFileSync(output, astToString(types));
