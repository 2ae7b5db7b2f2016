import { randomBytes } from "node:crypto";
import { Chat } from "@ai-sdk/react";
import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import type { Model } from "../../src/agent/model/model.ts";
import { chatHandler, createChatTransport } from "../../src/http/ui/index.ts";
import type { Content } from "../../src/session/message.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { ANN, listen, openRunServer } from "../http/runs-server.ts";
import { tokenOf } from "../http/server-support.ts";

const PICTURE = randomBytes(20_000);
const PNG = { type: "image", mediaType: "image/png" } as const;

/** An agent that keeps the content of the messages which its model got. */
function looker(got: Content[]) {
  const model: Model = {
    provider: "test",
    id: "eyes",
    complete: async ({ messages }) => {
      got.push(messages.at(-1)?.content ?? "");
      return { role: "assistant", content: "I see." };
    },
  };
  return createAgent({ name: "looker", prompt: "You look at pictures.", model });
}

function dataOf(content: Content | undefined): Buffer {
  const [part] = (content ?? []) as readonly { readonly data?: string }[];
  return Buffer.from(part?.data ?? "", "base64");
}

test("an uploaded picture is referred to by a message, reaches the model byte for byte and is downloaded in ranges", async () => {
  const got: Content[] = [];
  const server = await openRunServer({ agents: { looker: looker(got) } });
  const { client, sessionId, url } = server;
  const progress: number[] = [];
  const ref = await client.sessions.uploadBlob(sessionId, PICTURE, { onProgress: ({ sent }) => progress.push(sent) });
  expect(ref.bytes).toBe(PICTURE.length);
  expect(progress.at(-1)).toBe(PICTURE.length);
  const { runId } = await client.runs.start(sessionId, { input: [{ ...PNG, ...ref }] });
  await expect.poll(async () => (await client.runs.get(sessionId, runId)).status).toBe("finished");
  expect(dataOf(got[0])).toEqual(PICTURE);
  const { items } = await client.sessions.entries(sessionId);
  expect(JSON.stringify(items).length).toBeLessThan(10_000);
  expect(Buffer.from(await client.sessions.blob(sessionId, ref))).toEqual(PICTURE);
  const address = `${url}/api/sessions/${sessionId}/blobs/${ref.blob.slice(7)}`;
  const get = (headers: object, query = "?type=image/png") =>
    fetch(address + query, { headers: { ...ANN, ...headers } });
  const part = await get({ range: "bytes=100-199" });
  expect(part.status).toBe(206);
  expect(part.headers.get("content-range")).toBe(`bytes 100-199/${PICTURE.length}`);
  expect(Buffer.from(await part.arrayBuffer())).toEqual(PICTURE.subarray(100, 200));
  const end = await get({ range: "bytes=-50" });
  expect(Buffer.from(await end.arrayBuffer())).toEqual(PICTURE.subarray(-50));
  expect((await get({ range: `bytes=${PICTURE.length}-` })).status).toBe(416);
  const whole = await get({});
  expect(whole.headers.get("content-type")).toBe("image/png");
  expect(whole.headers.get("cache-control")).toContain("immutable");
  expect((await get({ "if-none-match": whole.headers.get("etag") ?? "" })).status).toBe(304);
});

test("a browser shows only raster images and PDF, and saves everything else", async () => {
  const { client, sessionId, url } = await openRunServer();
  const { blob } = await client.sessions.uploadBlob(sessionId, new TextEncoder().encode("<script>alert(1)</script>"));
  for (const type of ["image/svg+xml", "text/html", "application/xhtml+xml", ""]) {
    const { headers } = await fetch(
      `${url}/api/sessions/${sessionId}/blobs/${blob.slice(7)}?type=${encodeURIComponent(type)}&name=a%22.html`,
      { headers: ANN },
    );
    expect(headers.get("content-type")).toBe("application/octet-stream");
    expect(headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''a%22.html");
    expect(headers.get("content-security-policy")).toContain("sandbox");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  }
});

test("an upload or a download is refused for other users, other types and missing blobs, and nothing is stored", async () => {
  const { client, as, sessionId, url, store, manager } = await openRunServer({
    store: openMemoryStore({ blobBytesMax: 50_000 }),
  });
  const id = sessionId || (await manager.create({ userId: "ann" })).sessionId;
  await expect(as("bob").sessions.uploadBlob(id, PICTURE)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(client.sessions.uploadBlob(id, randomBytes(60_000))).rejects.toMatchObject({ code: "TOO_LARGE" });
  const form = await fetch(`${url}/api/sessions/${id}/blobs`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokenOf("ann")}`, "content-type": "text/plain" },
    body: "hello",
  });
  expect(form.status).toBe(415);
  const { blob, bytes } = await client.sessions.uploadBlob(id, PICTURE);
  await expect(as("bob").sessions.blob(id, blob)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  const other = (await manager.create({ userId: "bob" })).sessionId;
  await expect(as("bob").sessions.blob(other, blob)).rejects.toMatchObject({ code: "BLOB_NOT_FOUND" });
  const stolen = as("bob").sessions.addTurn(other, { role: "user", content: [{ ...PNG, blob, bytes }] });
  await expect(stolen).rejects.toMatchObject({ code: "BLOB_NOT_FOUND" });
  expect((await store.head(other))?.messageCount).toBe(0);
});

test("a picture in a message of useChat reaches the model, is loaded again by its URL, and is kept when the message is sent again", async () => {
  const got: Content[] = [];
  const { server, sessionId } = await openRunServer({ agents: { looker: looker(got) } });
  const handler = chatHandler(server, "/my/chat");
  const url = await listen({ fetch: handler });
  const transport = createChatTransport({ api: `${url}/my/chat`, headers: ANN });
  const chat = new Chat<UIMessage>({ id: sessionId, transport });
  const data = `data:image/png;base64,${PICTURE.toString("base64")}`;
  await chat.sendMessage({ text: "Look.", files: [{ type: "file", mediaType: "image/png", url: data }] });
  expect(chat.status).toBe("ready");
  const reloaded = await transport.messages(sessionId);
  const file = reloaded[0]?.parts.find((part) => part.type === "file");
  expect(file?.url).toMatch(/^\/my\/chat\/.+\/blobs\/[0-9a-f]{64}\?type=image%2Fpng$/);
  const bytes = await (await fetch(url + file?.url, { headers: ANN })).arrayBuffer();
  expect(Buffer.from(bytes)).toEqual(PICTURE);
  const again = new Chat<UIMessage>({ id: sessionId, messages: reloaded, transport });
  const [first] = reloaded;
  await again.sendMessage({ parts: first?.parts ?? [], messageId: first?.id as string });
  expect(again.status).toBe("ready");
  expect(got).toHaveLength(2);
  for (const content of got) {
    const picture = (content as readonly { type: string; data?: string }[]).find(({ type }) => type === "image");
    expect(Buffer.from(picture?.data ?? "", "base64")).toEqual(PICTURE);
  }
});

test("a user's fifth concurrent upload is refused, and the next one is accepted after an earlier one has ended", async () => {
  const { client, sessionId, url } = await openRunServer();
  const pending: ReadableStreamDefaultController<Uint8Array>[] = [];
  const slow = () =>
    fetch(`${url}/api/sessions/${sessionId}/blobs`, {
      method: "POST",
      headers: { ...ANN, "content-type": "application/octet-stream" },
      body: new ReadableStream({ start: (controller) => void pending.push(controller) }),
      duplex: "half",
    } as RequestInit);
  const uploads = [slow(), slow(), slow(), slow()];
  const bytes = new Uint8Array([1]);
  for (const controller of pending) controller.enqueue(bytes);
  const fifth = () =>
    client.sessions.uploadBlob(sessionId, bytes).then(
      () => "accepted",
      (error: { code: string }) => error.code,
    );
  await expect.poll(fifth).toBe("TOO_MANY_BODIES");
  for (const controller of pending) controller.close();
  expect((await Promise.all(uploads)).map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  expect(await fifth()).toBe("accepted");
});
