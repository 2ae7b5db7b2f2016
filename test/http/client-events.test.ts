import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { type Client, ClientError, createClient } from "../../src/http/client/index.ts";

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** A server that answers requests with the given answers in order, and records the requests. */
async function answer(
  ...answers: readonly Answer[]
): Promise<{ client: Client; asked: IncomingMessage[]; url: string }> {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    const next = answers[Math.min(asked.push(request), answers.length) - 1];
    next?.(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/prefix/`;
  return { client: createClient({ url, token: "secret" }), asked, url };
}

const refusing =
  (status: number, code: string | null, headers: Record<string, string> = {}): Answer =>
  (response) => {
    const problem = { type: "about:blank", title: "No", status, detail: `No: ${code}.`, code };
    response.writeHead(status, headers).end(code === null ? "<html>Bad gateway</html>" : JSON.stringify(problem));
  };

const streaming =
  (text: string, end: "end" | "cut" | "stay"): Answer =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => {
      if (end === "end") response.end();
      if (end === "cut") response.destroy();
    });
  };

const entry = (seq: number): string => `id: ${seq}\nevent: entry\ndata: {"seq":${seq}}\n\n`;

async function seqsOf(client: Client, count: number, options: object = {}): Promise<number[]> {
  const seqs: number[] = [];
  for await (const { seq } of client.sessions.watch("s", options)) if (seqs.push(seq) === count) break;
  return seqs;
}

test("reconnects after a lost connection, a 5xx status and a 429, from the last event on", async () => {
  const { client, asked } = await answer(
    refusing(503, "DRAINING"),
    streaming(`id: 4\n\n${entry(5)}${entry(6).slice(0, -1)}`, "cut"),
    refusing(502, null),
    streaming(`${entry(6)}`, "end"),
    refusing(429, "RATE_LIMITED", { "retry-after": "0" }),
    (response) => response.destroy(),
    streaming(entry(7), "stay"),
  );
  expect(await seqsOf(client, 3)).toEqual([5, 6, 7]);
  expect(asked.map(({ headers }) => headers["last-event-id"])).toEqual([undefined, undefined, "5", "5", "6", "6", "6"]);
  expect(asked[0]?.url).toBe("/prefix/api/sessions/s/watch");
  expect(asked[0]?.headers).toMatchObject({ authorization: "Bearer secret", accept: "text/event-stream" });
});

test.for([
  [400, "EVENT_ID_UNKNOWN"],
  [401, "UNAUTHORIZED"],
  [404, "SESSION_NOT_FOUND"],
  [410, "EVENT_GONE"],
] as const)("gives up on %i %s, and reports it", async ([status, code]) => {
  const { client, asked } = await answer(streaming(entry(1), "end"), refusing(status, code));
  await expect(seqsOf(client, 9)).rejects.toMatchObject({ code, status, problem: { code }, message: `No: ${code}.` });
  expect(asked).toHaveLength(2);
});

test("treats a silent connection as lost", async () => {
  const { client, asked } = await answer(streaming(entry(1), "stay"), streaming(entry(2), "stay"));
  expect(await seqsOf(client, 2, { idleMs: 500 })).toEqual([1, 2]);
  expect(asked).toHaveLength(2);
});

test("treats a silent connection as lost, and ends at an abort, with a fetch that ignores aborts", async () => {
  const { asked, url } = await answer(streaming(entry(1), "stay"), streaming(entry(2), "stay"));
  const client = createClient({ url, fetch: (address, { signal: _, ...init } = {}) => fetch(address, init) });
  const controller = new AbortController();
  const seqs: number[] = [];
  for await (const { seq } of client.sessions.watch("s", { idleMs: 500, signal: controller.signal })) {
    seqs.push(seq);
    if (seq === 2) setImmediate(() => controller.abort());
  }
  expect(seqs).toEqual([1, 2]);
  expect(asked).toHaveLength(2);
});

test("a comment keeps a connection alive, and a slow reader does not end it", async () => {
  const { client, asked } = await answer((response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(entry(1));
    const timer = setInterval(() => response.write(":\n\n"), 20);
    response.on("close", () => clearInterval(timer));
    setTimeout(() => response.write(entry(2)), 600);
  });
  expect(await seqsOf(client, 2, { idleMs: 300 })).toEqual([1, 2]);
  expect(asked).toHaveLength(1);
});

test("the end of the iteration closes the connection, and an abort ends the stream at any point", async () => {
  const closed: Promise<void>[] = [];
  const { client } = await answer((response) => {
    closed.push(new Promise((resolve) => response.on("close", resolve)));
    streaming(entry(1), "stay")(response, response.req);
  });
  expect(await seqsOf(client, 1)).toEqual([1]);
  await closed[0];
  const controller = new AbortController();
  const seqs: number[] = [];
  for await (const { seq } of client.sessions.watch("s", { signal: controller.signal })) {
    seqs.push(seq);
    // Aborted while the client waits for the next event.
    setImmediate(() => controller.abort());
  }
  expect(seqs).toEqual([1]);
  await closed[1];
  expect(await seqsOf(client, 1, { signal: AbortSignal.abort() })).toEqual([]);
});

test("an abort also ends the backoff before a retry", async () => {
  const controller = new AbortController();
  const client = createClient({
    url: "http://127.0.0.1",
    fetch: async () => {
      setTimeout(() => controller.abort(), 50);
      return new Response("{}", { status: 503, headers: { "retry-after": "3600" } });
    },
  });
  expect(await seqsOf(client, 1, { signal: controller.signal })).toEqual([]);
});

test("a refusal, an answer of another program and a missing answer have different codes", async () => {
  const { client } = await answer(
    refusing(409, "SESSION_BUSY", { "retry-after": "2" }),
    refusing(502, null),
    (response) => response.writeHead(200).end('{"half":'),
    (response) => response.destroy(),
  );
  const refused: unknown = await client.me().catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ClientError);
  expect(refused).toMatchObject({ name: "ClientError", code: "SESSION_BUSY", status: 409, retryAfterMs: 2000 });
  await expect(client.me()).rejects.toMatchObject({ code: "UNEXPECTED_ANSWER", status: 502, problem: null });
  await expect(client.me()).rejects.toMatchObject({ code: "UNEXPECTED_ANSWER", status: 200 });
  await expect(client.me()).rejects.toMatchObject({ code: "CONNECTION_FAILED", status: null, problem: null });
});

test("an invalid URL or token is refused with INVALID_OPTION, and not quoted", async () => {
  const wrong = ["", "nowhere", "ftp://host", "http://", "https://me:s3cret@host"];
  for (const url of wrong) {
    const refused = thrownBy(() => createClient({ url }));
    expect([url, refused]).toMatchObject([url, { name: "ClientError", code: "INVALID_OPTION", status: null }]);
    expect(String(refused)).not.toContain("s3cret");
  }
  const { url, asked } = await answer((response) => response.end("<html>"));
  for (const token of ["s3cret\ns3cret", "s3cret s3cret", "s3cret…"]) {
    const refused: unknown = await createClient({ url, token })
      .me()
      .catch((error: unknown) => error);
    expect([token, refused]).toMatchObject([token, { code: "INVALID_OPTION" }]);
    expect(String(refused)).not.toContain("s3cret");
  }
  const stream = createClient({ url, token: "s3cret…" }).runs.events("session", "run");
  await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: "INVALID_OPTION" });
  expect(asked).toEqual([]);
  await expect(createClient({ url, token: "good\n" }).me()).rejects.toThrow(
    `The answer of ${url.slice(0, -1)} is not valid JSON;`,
  );
  await expect(createClient({ url: "http://127.0.0.1:1" }).me()).rejects.toThrow(
    "http://127.0.0.1:1 cannot be reached",
  );
});

function thrownBy(act: () => unknown): unknown {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

test("an aborted call rejects with the reason of the signal", async () => {
  const { client } = await answer(() => {});
  const reason = new Error("Not needed any more.");
  await expect(client.me({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});

test.for(["", "\ud800"])("an id that cannot be in a path, %j, is refused before a request is sent", async (id) => {
  const { client, asked } = await answer(refusing(500, "INTERNAL"));
  await expect(client.sessions.get(id)).rejects.toMatchObject({ code: "INVALID_ID" });
  await expect(client.checkpoints.delete(id)).rejects.toMatchObject({ code: "INVALID_ID" });
  expect(asked).toEqual([]);
});
