import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { openManager } from "../../src/lifecycle/open-manager.ts";
import { scripted } from "../../src/models/scripted.ts";
import { type ContentPart, type Message, partsOf } from "../../src/session/message.ts";
import { Session } from "../../src/session/value/session.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { nameOf, picture, sampleBytes } from "../../src/testing/store/blob-cases.ts";

const image = sampleBytes(1, 20_000);
const inline = picture(image);
const question: readonly ContentPart[] = [{ type: "text", text: "What is this?" }, inline];

/** The pictures of messages, in short: by the hash of their data, or as references. */
const picturesOf = (messages: readonly Message[] | undefined): readonly string[] =>
  (messages ?? []).flatMap(({ content }) =>
    partsOf(content).flatMap((part) => {
      if (part.type !== "image") return [];
      return "blob" in part ? [`reference to ${part.blob}`] : [nameOf(Buffer.from(part.data, "base64"))];
    }),
  );

test("a model gets the very data that was given, in the run and in a later process, and the log has a reference", async () => {
  const directory = await mkdtemp(join(tmpdir(), "skein-attachments-"));
  try {
    const model = scripted(["A cat.", "Yes."]);
    const agent = createAgent({ model, prompt: "Look." });
    {
      await using manager = await openManager({ store: await openJsonlStore({ directory }) });
      await manager.create({ id: "s", userId: "u" });
      await manager.run("s", agent, question);
    }
    {
      await using store = await openJsonlStore({ directory });
      const manager = await openManager({ store });
      await manager.run("s", agent, "Sure?");
      const texts = await store.readJson("s");
      expect(texts.join("").length).toBeLessThan(10_000);
      expect(texts.join("")).toContain(nameOf(image));
    }
    for (const request of model.requests) expect(picturesOf(request.messages)).toEqual([nameOf(image)]);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("transforms of the context get references, and the model gets the data of the remaining ones", async () => {
  await using store = openMemoryStore();
  const manager = await openManager({ store });
  await manager.create({ id: "s", userId: "u" });
  const seen: string[] = [];
  const model = scripted(["A cat.", "Yes."]);
  const transform = (messages: readonly Message[]) => {
    seen.push(...picturesOf(messages));
    return messages.map((message) => ({ ...message }));
  };
  const agent = createAgent({ model, prompt: "Look." });
  await manager.run("s", agent, question);
  await manager.run("s", createAgent({ model, prompt: "Look.", context: [transform] }), "Sure?");
  expect(seen).toEqual([`reference to ${nameOf(image)}`]);
  expect(picturesOf(model.requests[1]?.messages)).toEqual([nameOf(image)]);
});

test("a run that is not kept, and one that is kept in another store, show and store the pictures of a stored session", async () => {
  await using store = openMemoryStore();
  await using other = openMemoryStore();
  const manager = await openManager({ store });
  await manager.create({ id: "s", userId: "u" });
  const model = scripted(["A cat.", "A dog.", "A cow."]);
  const agent = createAgent({ model, prompt: "Look." });
  const answered = await manager.run("s", agent, question);
  expect(answered).toBeInstanceOf(Session);
  await agent.run(answered, { persist: false });
  await agent.run(answered, { persist: other });
  for (const request of model.requests) expect(picturesOf(request.messages)).toEqual([nameOf(image)]);
  const [head] = (await other.list()).items;
  const stored = await other.blob(head?.header.id ?? "", nameOf(image));
  expect(nameOf((await stored?.bytes()) ?? new Uint8Array())).toBe(nameOf(image));
});

test("bytes can be given to a run as a Uint8Array", async () => {
  const model = scripted(["A cat."]);
  const given = { type: "image", mediaType: "image/png", name: "a.png", data: Uint8Array.from(image) };
  await createAgent({ model, prompt: "Look." }).run([given as unknown as ContentPart]);
  expect(picturesOf(model.requests[0]?.messages)).toEqual([nameOf(image)]);
});
