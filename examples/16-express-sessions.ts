// An Express application whose visitors have sessions: a cookie identifies it, an agent answers, and other visitors have no access.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express from "express";
import { createAgent, openManager, openStore } from "skein";
import { expressSession } from "skein/express";
import { SessionContext } from "skein/lifecycle";
import { scripted } from "skein/offline";

await using store = await openStore("sqlite:./visitors.db");
await using manager = await openManager({ store });
const context = new SessionContext(manager);
const model = scripted(["Hello!", "Hello again!", "One word at a time."]);
const agent = createAgent({ prompt: "You greet visitors.", model, builtInTools: false });

const app = express();
app.use(express.json());
app.use(expressSession({ manager, context, user: ({ headers }) => headers["x-user"] as string | undefined }));

app.get("/", (_request, response) => {
  response.send("Welcome. Nothing is stored for a visit that says nothing.");
});
app.post("/ask", async ({ session, body }, response) => {
  const answer = await session.run(agent, body.question);
  log(`${session.userId.slice(0, 9)}… asked`);
  response.json({ answer: answer.text(), turns: (await session.state()).turnCount });
});
app.post("/stream", async ({ session, body }, response) => {
  // The session is used before the response begins, so that the response's headers can name it.
  for await (const event of session.run(agent, body.question)) {
    if (event.type === "text-delta") response.write(event.text);
  }
  response.end();
});

/** Code without access to the request reads its session from the context. */
function log(line: string): void {
  assert.match(context.sessionId, /^[0-9a-f-]{36}$/);
  console.log(line);
}

const server = app.listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const ask = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ question: "Hello?" }),
  });

// A request that does not use its session stores nothing.
assert.deepEqual((await fetch(url)).headers.getSetCookie(), []);
assert.equal(await store.count({ status: "active" }), 0);

// The first question creates a session; the cookie of the response identifies it.
const first = await ask("/ask");
const [cookie = ""] = first.headers.getSetCookie();
console.log(cookie.replace(/=[^;]+/, "=…"));
assert.deepEqual(await first.json(), { answer: "Hello!", turns: 2 });
const again = await ask("/ask", { cookie: cookie.split(";")[0] ?? "" });
assert.deepEqual(await again.json(), { answer: "Hello again!", turns: 4 });
const id = first.headers.get("X-Session-ID") ?? "";
assert.equal(again.headers.get("X-Session-ID"), id);

// A session that is streamed to a user is not one that a visitor can have by knowing its id.
const streamed = await ask("/stream", { "x-user": "ann" });
assert.equal(await streamed.text(), "One word at a time.");
const foreign = await fetch(url, { headers: { "X-Session-ID": streamed.headers.get("X-Session-ID") ?? "" } });
assert.equal(foreign.headers.get("X-Session-ID"), null);
assert.equal((await fetch(url, { headers: { "X-Session-ID": id } })).headers.get("X-Session-ID"), id);
// A link cannot put a visitor into a session: an id in the query is ignored for anonymous visitors.
assert.equal((await fetch(`${url}/?session_id=${id}`)).headers.get("X-Session-ID"), null);

server.closeAllConnections();
server.close();
await once(server, "close");
for (const { header } of (await store.list({ status: "active" })).items) await store.delete(header.id);
