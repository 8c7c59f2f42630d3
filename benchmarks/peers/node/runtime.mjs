// What Lambda's runtime client does, in short: its own (aws-lambda-ric) is compiled when it is installed.

import http from "node:http";

const agent = new http.Agent({ keepAlive: true });
const invocations = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(`${invocations}/${path}`, { method, agent }, async (response) => {
      const parts = await Array.fromAsync(response);
      resolve([response.headers, Buffer.concat(parts).toString()]);
    });
    request.on("error", reject).end(body);
  });
}

const { handler } = (await import(`${process.env.LAMBDA_TASK_ROOT}/app.js`)).default;
for (;;) {
  const [headers, event] = await ask("GET", "next");
  const answer = await handler(JSON.parse(event));
  await ask("POST", `${headers["lambda-runtime-aws-request-id"]}/response`, JSON.stringify(answer));
}
