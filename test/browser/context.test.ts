import { expect } from "vitest";
import { browserTest } from "./browser-test.ts";

browserTest(
  "a message is left out of the context, shortened and restored, with the saved tokens, and the cache is explained",
  async ({ server: { client }, open }) => {
    const { header } = await client.sessions.create();
    const { id } = header;
    await client.sessions.addTurn(id, { turnId: "a", role: "user", content: "A question." });
    await client.sessions.addTurn(id, { turnId: "b", role: "user", content: "A long log. ".repeat(100) });
    const usage = { inputTokens: 2000, outputTokens: 1, totalTokens: 2001, cacheReadTokens: 0, cacheWriteTokens: 2000 };
    const answer = {
      role: "assistant",
      content: "An answer.",
      provider: "anthropic",
      model: "claude-opus-5",
      usage,
    } as const;
    await client.sessions.append(id, {
      entries: [
        { type: "message", id: "c", message: answer },
        { type: "message", message: answer },
      ],
    });
    const page = await open({ at: `#/sessions/${id}/context` });
    const size = page.getByRole("region", { name: "Size of the context" });
    await size.getByText("The total starts from what the provider last counted").waitFor();
    const messages = page.getByRole("region", { name: "Messages of the context" });
    const long = messages.getByRole("listitem").filter({ hasText: "2. user" });
    await long.locator("summary").click();
    await long
      .getByText(/Left out: each later request has \d+ tokens fewer, and a cache reads \d+ tokens anew, once/)
      .waitFor();
    await long.getByRole("button", { name: "Leave out" }).click();
    const omitted = page.getByRole("region", { name: "Left out" });
    await omitted.getByText("A long log.").first().waitFor();
    // The last count no longer applies: without the note, the total would seem to have lost the instructions as well.
    await size.getByText("An estimate of the messages alone").waitFor();
    await omitted.getByText(/Brought back: each later request has \d+ tokens more/).waitFor();
    expect((await client.sessions.context(id)).omitted).toMatchObject([{ entryId: "b" }]);
    await omitted.getByRole("button", { name: "Bring back" }).click();
    await omitted.waitFor({ state: "detached" });
    if ((await long.getByRole("button", { name: "Shorten" }).count()) === 0) await long.locator("summary").click();
    await long.getByRole("button", { name: "Shorten" }).click();
    await long.getByRole("textbox").fill("A short log.");
    await long.getByRole("button", { name: "Use this text" }).click();
    await long.getByText("edited").waitFor();
    expect((await client.sessions.context(id)).parts[1]?.message.content).toBe("A short log.");
    const cache = page.getByRole("region", { name: "Prompt cache" });
    await cache.getByText("2.00", { exact: true }).waitFor();
    await cache.getByText("unknown: 2,000 tokens").waitFor();
  },
);
