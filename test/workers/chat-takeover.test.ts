import { HttpAgent } from "@ag-ui/client";
import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, type UIMessage } from "ai";
import { describe, expect, onTestFinished, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { createChatTransport } from "../../src/http/ui/index.ts";
import { bullmqBell } from "../../src/workers/index.ts";
import { TOKENS, tokenOf } from "../http/server-support.ts";
import { redisSkip } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";
import { type Fleet, holderOf, openFleet, phasesOf, places } from "./fleet-support.ts";

const LEASE_MS = 2000;

/** The address of one more server of a fleet, which runs nothing itself. */
async function openServer({ manager, bellUrl }: Fleet): Promise<string> {
  const bell = bullmqBell({ url: bellUrl });
  onTestFinished(() => bell.close());
  const server = await createServer({ manager, agents: [], bell, tokens: TOKENS });
  onTestFinished(() => server.close({ drainMs: 0 }));
  return server.listen();
}

/** A page of a chat that talks to one server, with what was said before. */
async function openPage(url: string, id: string, stock: boolean): Promise<Chat<UIMessage>> {
  const init = {
    api: `${url}/api/chat`,
    headers: { authorization: `Bearer ${tokenOf("ann")}` },
    body: { agent: "helper" },
  };
  const own = createChatTransport(init);
  const transport = stock ? new DefaultChatTransport(init) : own;
  return new Chat({ id, messages: await own.messages(id), transport });
}

/** What a page shows of the answer: its words, and what became of its calls. */
const answerOf = ({ messages }: Chat<UIMessage>): string =>
  (messages[1]?.parts ?? [])
    .map((part) => (part.type === "text" ? part.text : "state" in part ? `[${part.state}] ` : ""))
    .join("");

/** What a client of AG-UI shows of the answer. */
const agUiAnswerOf = ({ messages }: HttpAgent): string =>
  messages
    .slice(1)
    .map(({ role, content }) => (role === "tool" ? "[result] " : (content ?? "")))
    .join("");

describe.for(places)("with a bell on %s", (place) => {
  test.for([
    { when: "in the middle of its words", text: "rounds=1 ms=60 talk=20", call: "output-available", until: "7 " },
    { when: "in the middle of a call", text: "rounds=1 ms=1500 talk=2", call: "output-error", until: "input" },
  ])(
    "a chat whose worker is killed $when ends whole on every server, with no word lost or repeated",
    async ({ text, call, until }, context) => {
      if (place === "redis" && redisSkip !== null) skipBecause(context, redisSkip);
      const fleet = await openFleet(place);
      const [here, there] = [await openServer(fleet), await openServer(fleet)];
      const options = { leaseMs: LEASE_MS, sweepMs: 500 };
      const workers = [await fleet.startWorker(options), await fleet.startWorker(options)];
      const id = crypto.randomUUID();
      const page = await openPage(here, id, false);
      const first = page.sendMessage({ text });
      await expect.poll(() => answerOf(page), { timeout: 20_000, interval: 20 }).not.toBe("");
      const agent = new HttpAgent({
        url: `${there}/agui/helper`,
        threadId: id,
        headers: { authorization: `Bearer ${tokenOf("ann")}` },
      });
      const listened = agent.runAgent();
      await expect.poll(() => answerOf(page), { timeout: 20_000, interval: 20 }).toContain(until);
      await expect.poll(() => agent.messages.length, { timeout: 20_000, interval: 20 }).toBeGreaterThan(1);
      const [holder] = await holderOf(workers, /^round /);
      holder.child.kill("SIGKILL");
      // One page comes before another worker has the run, one while it tells the answer once more; one has stayed.
      const early = await openPage(there, id, true);
      const resumed = early.resumeStream();
      await expect.poll(async () => (await phasesOf(fleet.store, id)).length, { timeout: 20_000 }).toBeGreaterThan(1);
      const late = await openPage(there, id, false);
      await Promise.all([first, resumed, late.resumeStream(), listened]);
      const words = Array.from({ length: Number(/talk=(\d+)/.exec(text)?.[1]) }, (_, piece) => `${piece} `).join("");
      const whole = `[${call}] ${words}done`;
      for (const chat of [page, early, late, await openPage(here, id, false)]) {
        expect(chat.error).toBeUndefined();
        expect(chat.messages).toHaveLength(2);
        expect(answerOf(chat)).toBe(whole);
      }
      expect(agUiAnswerOf(agent)).toBe(`[result] ${words}done`);
      expect(await phasesOf(fleet.store, id)).toEqual(["started", "started", "finished"]);
    },
  );
});
