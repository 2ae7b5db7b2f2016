import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { hashToken } from "../../src/http/api-token.ts";
import { chatHandler, createChatTransport, type UIMessageMetadata } from "../../src/http/ui/index.ts";
import { scripted } from "../../src/models/index.ts";
import { call, calls, clerk } from "./clerk.ts";
import { gate, pausing } from "./runs-agents.ts";
import { ANN, logOf, openRunServer, type RunServer } from "./runs-server.ts";

/** A chat like that of `useChat`, without React. */
function chatOn(
  { url }: Pick<RunServer, "url">,
  id: string,
  { stock = false, messages = [] as UIMessage[], asked = [] as string[] } = {},
) {
  const noting: typeof fetch = (address, init) => {
    asked.push(String(address).slice(url.length));
    return fetch(address, init);
  };
  const init = { api: `${url}/api/chat`, headers: ANN, fetch: noting };
  return new Chat({
    id,
    messages,
    transport: stock ? new DefaultChatTransport(init) : createChatTransport(init),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
}

const NO_RIGHTS = {
  hash: hashToken("a-token-for-readers-only"),
  userId: "ann",
  may: { run: false, approve: false, files: false },
};

/**
 * Messages without undefined properties, the numbers of streamed parts, and the metadata of users' messages, which a page
 * makes itself.
 */
const plain = (messages: readonly UIMessage[]): unknown =>
  JSON.parse(
    JSON.stringify(
      messages.map(({ metadata, ...message }) => (message.role === "user" ? message : { ...message, metadata })),
    ),
    (key, value) => (key === "id" && /^\d+$/.test(value) ? undefined : value),
  );

/** The place of each message among its siblings, as `2/3`. */
const places = (messages: readonly UIMessage[]): string[] =>
  messages.map(({ metadata }) => {
    const { entryId, siblings } = (metadata as UIMessageMetadata).skein;
    return `${siblings.indexOf(entryId) + 1}/${siblings.length}`;
  });

/** Reads a chat from the server. */
const stored = (server: RunServer, id: string): Promise<UIMessage[]> =>
  createChatTransport({ api: `${server.url}/api/chat`, headers: ANN }).messages(id);

/** The texts of messages; messages of the model with the results of their calls. */
const shown = (messages: readonly UIMessage[]): string[] =>
  messages.map(({ role, parts }) => {
    const texts = parts.map((part) => {
      if (part.type === "text") return part.text;
      if (part.type === "reasoning") return `(${part.text})`;
      return "state" in part && part.type.startsWith("tool-") ? `[${part.type.slice(5)} ${part.state}]` : "";
    });
    return `${role}: ${texts.join("")}`;
  });

test.for([true, false])(
  "a new chat becomes a session, and the stream equals the session afterwards (stock: %s)",
  async (stock) => {
    const helper = clerk(
      "Hello!",
      calls(call("look", { at: "a" }, "1"), call("look", { at: "nothing" }, "2")),
      "Done.",
    );
    const server = await openRunServer({ agents: { helper } });
    const id = "aChatThatIsNew01";
    const chat = chatOn(server, id, { stock });
    await chat.sendMessage({ text: "Hi." });
    await chat.sendMessage({ text: "Look around." });
    expect(chat.status).toBe("ready");
    expect(shown(chat.messages)).toEqual([
      "user: Hi.",
      "assistant: Hello!",
      "user: Look around.",
      "assistant: (Which tool?)[look output-available][look output-error]Done.",
    ]);
    expect(chat.messages[3]?.parts[2]).toMatchObject({ input: { at: "a" }, output: { seen: "a" } });
    expect(chat.messages[3]?.parts[3]).toMatchObject({ errorText: "There is nothing there." });
    expect(plain(chat.messages)).toEqual(plain(await stored(server, id)));
    const sent = server.store.head(id);
    expect((await sent)?.header.userId).toBe("ann");
  },
);

/** Answers the questions of the last message, and waits for the result. */
async function answerAll(chat: Chat<UIMessage>, approved: boolean, reason?: string): Promise<void> {
  const asked = (chat.lastMessage?.parts ?? []).flatMap((part) =>
    part.type === "tool-pay" && part.state === "approval-requested" ? [part.approval.id] : [],
  );
  expect(asked.length).toBeGreaterThan(0);
  for (const id of asked)
    await chat.addToolApprovalResponse({ id, approved, ...(reason === undefined ? {} : { reason }) });
  await expect.poll(() => JSON.stringify(chat.lastMessage)).not.toContain("approval-responded");
  await expect.poll(() => chat.status).toBe("ready");
}

test("an approval lets a call run and a denial does not, and the answer continues in the same message", async () => {
  const helper = clerk(calls(call("look"), call("pay", { euros: 5 })), calls(call("pay", { euros: 6 })), "It is done.");
  const server = await openRunServer({ agents: { helper } });
  const chat = chatOn(server, server.sessionId, { stock: true });
  await chat.sendMessage({ text: "Pay." });
  expect(plain(chat.messages)).toEqual(plain(await stored(server, server.sessionId)));
  expect(shown(chat.messages)[1]).toBe("assistant: (Which tool?)[look output-available][pay approval-requested]");
  await answerAll(chat, true);
  await answerAll(chat, false, "Too much.");
  expect(shown(chat.messages)).toEqual([
    "user: Pay.",
    "assistant: (Which tool?)[look output-available][pay output-available](Which tool?)[pay output-denied]It is done.",
  ]);
  expect(shown(await stored(server, server.sessionId))).toEqual(shown(chat.messages));
  expect(await logOf(server.store, server.sessionId)).toContain("finished");
});

test("the questions of several calls are asked together, and a parked run is answered like any other", async () => {
  const helper = clerk(calls(call("pay", {}, "1"), call("look"), call("pay", {}, "2")), "It is done.");
  const server = await openRunServer({ agents: { helper }, init: { park: { afterMs: 0 } } });
  const first = chatOn(server, server.sessionId);
  await first.sendMessage({ text: "Pay twice." });
  await expect.poll(async () => (await server.store.head(server.sessionId))?.openRuns[0]?.state).toBe("parked");
  const chat = chatOn(server, server.sessionId, { messages: await stored(server, server.sessionId) });
  await chat.resumeStream();
  expect(shown(chat.messages)[1]).toBe("assistant: (Which tool?)[pay approval-requested][pay approval-requested]");
  expect(shown(first.messages)).toEqual(shown(chat.messages));
  await answerAll(chat, true);
  expect(shown(await stored(server, server.sessionId))[1]).toBe(
    "assistant: (Which tool?)[pay output-available][look output-available][pay output-available]It is done.",
  );
  expect(chat.messages).toHaveLength(2);
});

test("a client that reloads a chat during an answer gets every word once, also if the answer ended in the meantime", async () => {
  const pause = gate();
  const helper = clerk(calls(call("look")), pausing(["One ", "two ", "three."], pause));
  const server = await openRunServer({ agents: { helper } });
  const { sessionId } = server;
  const first = chatOn(server, sessionId, { stock: true });
  void first.sendMessage({ text: "Count." });
  await expect.poll(() => shown(first.messages)[1]).toContain("One two ");
  const messages = await stored(server, sessionId);
  const asked: string[] = [];
  const second = chatOn(server, sessionId, { messages, asked });
  const third = chatOn(server, sessionId, { stock: true, messages });
  // Drops the connection of the first page, as a reload does.
  await first.stop();
  // A stream that is replaced by another one does not count as a stop.
  void second.resumeStream();
  await expect.poll(() => second.status).toBe("streaming");
  const resumed = second.resumeStream();
  await expect.poll(() => shown(second.messages)[1]).toContain("One two ");
  pause.open();
  await resumed;
  expect(asked).toEqual([1, 2].map(() => `/api/chat/${sessionId}/stream`));
  await third.resumeStream();
  for (const chat of [second, third]) {
    const said = ["user: Count.", "assistant: (Which tool?)[look output-available]One two three."];
    expect(shown(chat.messages)).toEqual(said);
    expect(plain(chat.messages)).toEqual(plain(await stored(server, sessionId)));
  }
  expect(await chatOn(server, "aChatThatIsNew01").resumeStream()).toBeUndefined();
});

test("a reader that starts far behind is not stopped by a question that is already answered", async () => {
  const pause = gate();
  const server = await openRunServer({
    agents: { helper: clerk(calls(call("pay")), pausing(["One ", "two."], pause)) },
  });
  const { sessionId, manager } = server;
  const first = chatOn(server, sessionId);
  await first.sendMessage({ text: "Pay." });
  const part = first.lastMessage?.parts.at(-1);
  if (part?.type !== "tool-pay" || part.state !== "approval-requested") throw new Error("Nothing is asked.");
  // There are more entries between the question and its answer than one read returns.
  await manager.steer(sessionId, "x".repeat(200_000));
  await manager.approve(sessionId, part.approval.id);
  const second = chatOn(server, sessionId, { messages: await stored(server, sessionId) });
  const joined = second.resumeStream();
  await expect.poll(() => shown(second.messages)[1]).toContain("[pay output-available]One ");
  pause.open();
  await joined;
  expect(shown(second.messages)[1]).toBe("assistant: (Which tool?)[pay output-available]One two.");
});

test("stop cancels the run, keeps the partial answer, and the next message is answered immediately", async () => {
  const never = gate();
  const helper = clerk(pausing(["One ", "two."], never), "Yes?");
  const server = await openRunServer({ agents: { helper } });
  const chat = chatOn(server, server.sessionId);
  void chat.sendMessage({ text: "Count." });
  await expect.poll(() => shown(chat.messages)[1]).toBe("assistant: One ");
  void chat.stop();
  await chat.sendMessage({ text: "Stop!" });
  expect(chat.error).toBeUndefined();
  expect(shown(chat.messages).at(-1)).toBe("assistant: Yes?");
  expect(await logOf(server.store, server.sessionId)).toContain("cancelled");
  expect(shown(await stored(server, server.sessionId))).toEqual(shown(chat.messages));
});

test("a run continues when its reader disconnects, unless cancelWhenLeft is set and no reader reconnects in time", async () => {
  const leaving = async (init: object): Promise<{ server: RunServer; chat: Chat<UIMessage>; open: () => void }> => {
    const pause = gate();
    const server = await openRunServer({ agents: { helper: clerk(pausing(["One ", "two."], pause)) }, init });
    const chat = chatOn(server, server.sessionId, { stock: true });
    void chat.sendMessage({ text: "Count." });
    await expect.poll(() => shown(chat.messages)[1]).toBe("assistant: One ");
    await chat.stop();
    return { server, chat, open: pause.open };
  };
  const stays = await leaving({});
  stays.open();
  await expect.poll(() => logOf(stays.server.store, stays.server.sessionId)).toContain("finished");

  const ends = await leaving({ cancelWhenLeft: { afterMs: 50 } });
  await expect.poll(() => logOf(ends.server.store, ends.server.sessionId)).toContain("cancelled");

  const returns = await leaving({ cancelWhenLeft: { afterMs: 60_000 } });
  const back = chatOn(returns.server, returns.server.sessionId, { stock: true, messages: returns.chat.messages });
  const resumed = back.resumeStream();
  await expect.poll(() => back.status).toBe("streaming");
  returns.open();
  await resumed;
  expect(await logOf(returns.server.store, returns.server.sessionId)).toContain("finished");
});

test.for([true, false])(
  "a regenerated answer and an edited question are branches: earlier messages are kept (stock: %s)",
  async (stock) => {
    const helper = clerk("One.", "Two.", "Three.", "Four.", "Five.");
    const server = await openRunServer({ agents: { helper } });
    const { sessionId, store } = server;
    const chat = chatOn(server, sessionId, { stock });
    await chat.sendMessage({ text: "A number?" });
    await chat.regenerate();
    expect(shown(chat.messages)).toEqual(["user: A number?", "assistant: Two."]);
    const [asked] = chat.messages;
    await chat.sendMessage({ text: "Another number?", messageId: asked?.id ?? "" });
    await chat.regenerate();
    expect(shown(chat.messages)).toEqual(["user: Another number?", "assistant: Four."]);
    await chat.sendMessage({ text: "And then?" });
    expect(plain(chat.messages)).toEqual(plain(await stored(server, sessionId)));
    expect((await logOf(store, sessionId)).filter((line) => line.includes(":"))).toEqual([
      ...["user: A number?", "assistant: One.", "assistant: Two."],
      ...["user: Another number?", "assistant: Three.", "assistant: Four."],
      ...["user: And then?", "assistant: Five."],
    ]);
  },
);

test("messages have the ids of their siblings, and a chat continues at the latest leaf below one, unless a run is open", async () => {
  const pause = gate();
  const helper = clerk("One.", "Two.", "Three.", "Four.", pausing(["Late."], pause));
  const server = await openRunServer({ agents: { helper } });
  const { sessionId, client } = server;
  const chat = chatOn(server, sessionId);
  const transport = createChatTransport({ api: `${server.url}/api/chat`, headers: ANN });
  await chat.sendMessage({ text: "A number?" });
  await chat.regenerate();
  await chat.sendMessage({ text: "And then?" });
  await chat.regenerate();
  expect(shown(chat.messages)).toEqual(["user: A number?", "assistant: Two.", "user: And then?", "assistant: Four."]);
  const now = await transport.messages(sessionId);
  expect(places(now)).toEqual(["1/1", "2/2", "1/1", "2/2"]);

  const { skein } = now.map(({ metadata }) => metadata as UIMessageMetadata)[1] ?? { skein: { siblings: [] } };
  const { siblings } = skein;
  expect(shown(await transport.select(sessionId, siblings[0] ?? ""))).toEqual(["user: A number?", "assistant: One."]);
  // The latest leaf below the second answer is the end of its branch.
  expect(plain(await transport.select(sessionId, siblings[1] ?? ""))).toEqual(plain(now));
  await expect(transport.select(sessionId, "nowhere")).rejects.toMatchObject({ code: "UNKNOWN_ENTRY" });
  const summary = { entryId: siblings[0] ?? "", summary: "No.", latest: true };
  await expect(client.sessions.moveLeaf(sessionId, summary)).rejects.toMatchObject({ code: "INVALID_REQUEST" });

  await client.runs.start(sessionId, { input: "Wait." });
  const before = await client.sessions.get(sessionId);
  await expect(transport.select(sessionId, siblings[0] ?? "")).rejects.toMatchObject({ code: "SESSION_BUSY" });
  await expect(client.sessions.moveLeaf(sessionId, { entryId: siblings[0] ?? "", latest: true })).rejects.toMatchObject(
    { code: "SESSION_BUSY" },
  );
  expect((await client.sessions.get(sessionId)).leafId).toBe(before.leafId);
  pause.open();
});

test("a repeated request is the same run, and a refused one can be retried as a regenerated answer", async () => {
  const pause = gate();
  const helper = clerk(pausing(["One ", "two."], pause), "Three.");
  const server = await openRunServer({ agents: { helper } });
  const { sessionId } = server;
  const [chat, same, other] = [1, 2, 3].map(() => chatOn(server, sessionId)) as [
    Chat<UIMessage>,
    Chat<UIMessage>,
    Chat<UIMessage>,
  ];
  const message = { id: "m1", role: "user", parts: [{ type: "text", text: "Count." }] } as const;
  const sent = chat.sendMessage({ ...message, parts: [...message.parts] });
  await expect.poll(() => chat.status).toBe("streaming");
  const repeated = same.sendMessage({ ...message, parts: [...message.parts] });
  await other.sendMessage({ text: "More." });
  expect(other.error).toMatchObject({ code: "SESSION_BUSY" });
  pause.open();
  await Promise.all([sent, repeated]);
  expect(shown(same.messages)).toEqual(["user: Count.", "assistant: One two."]);
  await other.regenerate();
  expect(shown(await stored(server, sessionId))).toEqual([
    ...["user: Count.", "assistant: One two.", "user: More.", "assistant: Three."],
  ]);
});

test("a message whose run was cancelled before its start is answered by a retry", async () => {
  const server = await openRunServer({ agents: { helper: clerk("Hello!") } });
  const { sessionId, manager } = server;
  // The queue is not notified, so the request waits.
  await manager.request(sessionId, { agent: "helper", input: "Hi.", runId: "m1" });
  await manager.cancel(sessionId, { runId: "m1" });
  const chat = chatOn(server, sessionId, {
    messages: [{ id: "m1", role: "user", parts: [{ type: "text", text: "Hi." }] }],
  });
  await chat.regenerate();
  expect(shown(chat.messages)).toEqual(["user: Hi.", "assistant: Hello!"]);
  expect(plain(chat.messages)).toEqual(plain(await stored(server, sessionId)));
});

test("an invalid message and an inaccessible chat are refused with one sentence", async () => {
  const server = await openRunServer({ agents: { helper: clerk("Hello!") } });
  const ask = async (body: object): Promise<unknown> => {
    const headers = { ...ANN, "content-type": "application/json" };
    const response = await fetch(`${server.url}/api/chat`, { method: "POST", headers, body: JSON.stringify(body) });
    const { code, problems } = (await response.json()) as { code: string; problems?: { message: string }[] };
    return problems?.[0]?.message ?? code;
  };
  const id = server.sessionId;
  const says = (...parts: readonly object[]): object => ({ id, messages: [{ id: "m", role: "user", parts }] });
  expect(await ask({ id, messages: [] })).toBe("There is no message.");
  expect(await ask({ id, messages: [{ id: "m", role: "user", content: "Hi." }] })).toContain("ai 6");
  expect(await ask({ id, messages: [{ id: "m", role: "assistant", parts: [] }] })).toContain("runs tools itself");
  expect(await ask(says())).toBe("The message is empty.");
  expect(await ask(says({ type: "data-x", data: 1 }))).toBe("A person's message has text and files.");
  expect(await ask(says({ type: "file", mediaType: "image/png", url: "https://x/y" }))).toContain("data URL");
  const foreign = await server.manager.create({ id: "aChatOfSomeone01", userId: "bob" });
  for (const other of [foreign.sessionId, "nobody-has-this"]) {
    expect(await ask({ ...says({ type: "text", text: "Hi." }), id: other })).toBe("SESSION_NOT_FOUND");
  }
});

test("a caller without the right to run can read, and one without the right to approve cannot answer", async () => {
  const token = {
    hash: hashToken("a-token-to-run-only"),
    userId: "ann",
    may: { run: true, approve: false, files: false },
  };
  const { url, sessionId } = await openRunServer({
    agents: { helper: clerk(calls(call("pay"))) },
    init: { tokens: [token, NO_RIGHTS] },
  });
  const chatOf = (secret: string): Chat<UIMessage> => {
    const headers = { authorization: `Bearer ${secret}` };
    const transport = createChatTransport({ api: `${url}/api/chat`, headers });
    return new Chat({
      id: sessionId,
      transport,
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
  };
  const reader = chatOf("a-token-for-readers-only");
  await reader.sendMessage({ text: "Pay." });
  expect(reader.error).toMatchObject({ code: "FORBIDDEN" });
  const chat = chatOf("a-token-to-run-only");
  await chat.sendMessage({ text: "Pay." });
  const part = chat.lastMessage?.parts.at(-1);
  if (part?.type !== "tool-pay" || part.state !== "approval-requested") throw new Error("Nothing is asked.");
  await chat.addToolApprovalResponse({ id: part.approval.id, approved: true });
  await expect.poll(() => chat.error).toMatchObject({ code: "FORBIDDEN" });
  await reader.resumeStream();
  expect(shown(reader.messages).at(-1)).toBe("assistant: (Which tool?)[pay approval-requested]");
});

test("every fetch handler can serve the routes, under another path, and they accept files", async () => {
  const model = scripted(["I see."]);
  const helper = createAgent({ prompt: "Look.", model, builtInTools: false });
  const { server, sessionId } = await openRunServer({ agents: { helper } });
  const handler = chatHandler(server, "/assistant");
  const transport = createChatTransport({
    api: "http://127.0.0.1/assistant",
    headers: async () => ANN,
    fetch: (input, init) => handler(new Request(input, init)),
  });
  const chat = new Chat({ id: sessionId, transport });
  const url = "data:image/png;base64,AAAA";
  await chat.sendMessage({ text: "Look.", files: [{ type: "file", mediaType: "image/png", url, filename: "a.png" }] });
  expect(shown(await transport.messages(sessionId))).toEqual(["user: Look.", "assistant: I see."]);
  expect(plain(chat.messages)).toEqual(plain(await transport.messages(sessionId)));
  expect(model.requests[0]?.messages.at(-1)?.content).toEqual([
    { type: "image", mediaType: "image/png", data: "AAAA", name: "a.png" },
    { type: "text", text: "Look." },
  ]);
  expect((await handler(new Request("http://127.0.0.1/elsewhere"))).status).toBe(404);
});
