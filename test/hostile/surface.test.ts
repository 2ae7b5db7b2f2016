import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { scripted } from "../../src/models/index.ts";
import { type Operation, readContract, statusOfForeign } from "../http/server-contract.ts";
import { type Answer, type CallOptions, startTestServer, TOKENS, tokenOf } from "../http/server-support.ts";
import { sendRaw } from "../http/raw-request.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { readRaw, until } from "./attackers.ts";
import {
  bodyTypeOf,
  type Ids,
  namesSomething,
  pathOf,
  rightBody,
  wrongBodies,
  wrongQueries,
} from "./surface-requests.ts";

const EXPIRED = { token: tokenOf("gone"), userId: "gone", expiresAt: "2020-01-01T00:00:00.000Z" };
const CODES: ReadonlySet<string> = new Set(
  [...readFileSync("docs/errors.md", "utf8").matchAll(/^\| (?:\d{3} \| )?`([A-Z_]+)`/gm)].map(([, code = ""]) => code),
);

// The tests are made from the document, so that the server has to be there before them.
const pay = toolOf("pay", () => "paid", { needsApproval: () => true });
const replies = Array.from({ length: 100 }, () => calling(callOf("1", "pay")));
const agents = [
  createAgent({ name: "payer", prompt: "Pay.", model: scripted(replies), tools: [pay], builtInTools: false }),
];
const server = await startTestServer({ tokens: [...TOKENS, EXPIRED], agents, limits: { rate: null } });
afterAll(() => server[Symbol.asyncDispose]());
const { document, operations } = await readContract(server);
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(document, "document");
const isProblem = ajv.compile({ $ref: "document#/components/schemas/Problem" });
/** An operation that lists its problems must list all of them. */
const saysProblems = operations.some(({ responses }) => Object.keys(responses).some((status) => /^4/.test(status)));
const annas = await makeThings("ann");

/** Sends a request and checks that the refusal is one that the document and docs/errors.md know. */
async function refusal(operation: Operation | null, request: () => Promise<Answer>): Promise<Answer> {
  const answer = await request();
  expect(answer.status, answer.text.slice(0, 300)).toBeGreaterThanOrEqual(400);
  expect(answer.status).toBeLessThan(500);
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(isProblem(answer.body), answer.text).toBe(true);
  expect(answer.body.status).toBe(answer.status);
  expect(CODES).toContain(answer.body.code);
  expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  expect(answer.text).not.toMatch(/\bat .*\.(?:js|ts):\d|node_modules/);
  const documented = Object.keys(operation?.responses ?? { default: {} });
  expect(documented, `${answer.status} of ${operation?.operationId} is not documented`).toContain(
    saysProblems && operation !== null ? String(answer.status) : "default",
  );
  return answer;
}

for (const operation of operations) {
  const { method, operationId, path } = operation;
  const type = bodyTypeOf(operation);
  const own = pathOf(operation, annas);
  const isOpen = (operation as { security?: unknown[] }).security?.length === 0 || !path.startsWith("/api/");
  const ask = (at: string, body: unknown, options: CallOptions): Promise<Answer> =>
    server.call(method, at, type === "application/jsonl" ? "{}" : body, {
      ...options,
      headers: { ...(type === null ? {} : { "content-type": type }), ...options.headers },
    });
  const ann = { token: tokenOf("ann") };

  if (!isOpen) {
    test(`${operationId} without a token is refused`, async () => {
      const answer = await refusal(operation, () => ask(own, rightBody(operation, ajv), {}));
      expect(answer.body).toMatchObject({ status: 401, code: "UNAUTHORIZED" });
    });

    test(`${operationId} with a token whose time is over is refused`, async () => {
      const answer = await refusal(operation, () => ask(own, rightBody(operation, ajv), { token: EXPIRED.token }));
      expect(answer.body).toMatchObject({ status: 401, code: "TOKEN_EXPIRED" });
    });
  }

  if (namesSomething(operation)) {
    test(`${operationId} with another user's ids finds nothing`, async () => {
      const status = statusOfForeign(operation);
      const request = () => ask(own, rightBody(operation, ajv), { token: tokenOf("bob") });
      const answer = await (status === 204 ? request() : refusal(operation, request));
      expect(answer.status).toBe(status);
      for (const secret of ["A secret of ann's", "payer"]) expect(answer.text).not.toContain(secret);
    });
  }

  if (!isOpen) {
    test(`${operationId} with a query of the wrong kind is refused by name`, async () => {
      for (const { what, path: at } of wrongQueries(operation, annas)) {
        const { body } = await refusal(operation, () => ask(at, rightBody(operation, ajv), ann));
        expect(body, what).toMatchObject({ status: 400 });
      }
    });
  }

  if (type === "application/json") {
    test(`${operationId} with a body of the wrong kind is refused by name`, async () => {
      for (const { what, path: at, body } of wrongBodies(operation, annas, ajv)) {
        const answer = await refusal(operation, () => ask(at, JSON.stringify(body), ann));
        expect(answer.body, what).toMatchObject({ status: 400, code: "INVALID_REQUEST" });
      }
    });
  }

  if (type !== null) {
    // Bytes of any kind have no depth.
    if (type !== "application/octet-stream") {
      test(`${operationId} with a body that nests too deep is refused`, async () => {
        const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
        const answer = await refusal(operation, () =>
          server.call(method, own, deep, { ...ann, headers: { "content-type": type } }),
        );
        expect(answer.status).toBe(400);
      });
    }

    test(`${operationId} with a body that is too long is refused before it comes`, async () => {
      const head = `${method} ${own} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${ann.token}\r\n`;
      const lines = `${head}Content-Type: ${type}\r\nContent-Length: 1073741824\r\n\r\n{`;
      const answer = await refusal(operation, async () => readRaw(await sendRaw(server.url, lines)));
      expect(answer.body).toMatchObject({ status: 413, code: "BODY_TOO_LARGE" });
    });

    test(`${operationId} with a content type that a form can send is refused`, async () => {
      const answer = await refusal(operation, () =>
        server.call(method, own, "{}", { ...ann, headers: { "content-type": "text/plain" } }),
      );
      expect(answer.body).toMatchObject({ status: 415, code: "UNSUPPORTED_MEDIA_TYPE" });
    });
  }

  test(`${operationId} with an unsupported method is refused with the supported ones`, async () => {
    const taken = operations.filter((one) => one.path === path).map((one) => one.method);
    const other = ["DELETE", "PUT", "PATCH", "POST"].find((one) => !taken.includes(one)) as string;
    const answer = await refusal(null, () => server.call(other, own, {}, ann));
    expect(answer.body).toMatchObject({ status: 405, code: "METHOD_NOT_ALLOWED" });
    for (const one of taken) expect(answer.headers.get("allow")).toContain(one);
  });
}

test("nothing of all this was an error of the server, and ann's data is unchanged", async () => {
  expect(server.log.filter(({ level }) => level === "error")).toEqual([]);
  const { body } = await server.call("GET", `/api/sessions/${annas.session}`, undefined, { token: tokenOf("ann") });
  expect(body).toMatchObject({ version: annas.version, status: "active", name: "ann's" });
  const run = await server.call("GET", `/api/sessions/${annas.session}/runs/${annas.run}`, undefined, {
    token: tokenOf("ann"),
  });
  expect(run.body).toMatchObject({ status: "running", questions: [{ question: annas.question }] });
});

/** A session of another user with an entry, a checkpoint and a waiting run. */
async function makeThings(userId: string): Promise<Ids & { readonly version: number }> {
  const token = tokenOf(userId);
  const ask = async (path: string, body: unknown) => (await server.call("POST", path, body, { token })).body;
  const session: string = (await ask("/api/sessions", { name: `${userId}'s` })).header.id;
  await ask(`/api/sessions/${session}/turns`, { turnId: "turn", role: "user", content: `A secret of ${userId}'s.` });
  const checkpoint: string = (await ask(`/api/sessions/${session}/checkpoints`, {})).id;
  const run: string = (await ask(`/api/sessions/${session}/runs`, { input: "Pay." })).runId;
  let question = "";
  await until(async () => {
    const { body } = await server.call("GET", `/api/sessions/${session}/runs/${run}`, undefined, { token });
    question = body.questions[0]?.question ?? "";
    return question !== "";
  });
  const { body } = await server.call("GET", `/api/sessions/${session}`, undefined, { token });
  return { session, entry: "turn", checkpoint, run, question, version: body.version };
}
