// Evaluate requests with iam-simulate and AWS' reference data (iam-data): JSON in and out, see test_permissions.py.
import { runSimulation, runUnsafeSimulation } from "@cloud-copilot/iam-simulate";

const { policy, requests } = JSON.parse(await new Response(process.stdin).text());
const accountId = "123456789012";

async function isAllowed({ action, resource, context }) {
  const simulation = {
    request: {
      principal: `arn:aws:iam::${accountId}:role/any`,
      action,
      resource: { resource, accountId },
      contextVariables: context,
    },
    identityPolicies: [{ name: "identity", policy }],
    serviceControlPolicies: [],
    resourceControlPolicies: [],
  };
  const { errors, overallResult } = await runSimulation(simulation, {});
  if (!errors) return overallResult === "Allowed";
  // An alias and a version of a function look alike.
  if (errors.message === "multiple.resource.types") return runUnsafeSimulation(simulation, {}) === "Allowed";
  throw new Error(`${action} on ${resource}: ${JSON.stringify(errors)}`);
}

const answers = [];
for (const request of requests) answers.push({ ...request, allowed: await isAllowed(request) });
console.log(JSON.stringify(answers));
