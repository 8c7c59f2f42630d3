// Evaluate requests with iam-simulate and AWS' reference data (iam-data): JSON in and out, see test_permissions.py.
import { runSimulation } from "@cloud-copilot/iam-simulate";

const policies = JSON.parse(await new Response(process.stdin).text());
const accountId = "123456789012";

async function isAllowed(policy, { action, resource, context }) {
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
  throw new Error(`${action} on ${resource}: ${JSON.stringify(errors)}`);
}

for (const { policy, requests } of Object.values(policies)) {
  for (const request of requests) request.allowed = await isAllowed(policy, request);
}
console.log(JSON.stringify(policies));
