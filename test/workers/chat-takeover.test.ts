import { Chat } from "@ai-sdk/react";
import { DefaultChatTransport, type UIMessage } from "ai";
import { describe, expect, onTestFinished, test } from "vitest";
import { createServer } from "../../src/http/index.ts";
import { createChatTransport } from "../../src/http/ui/index.ts";
import { bullmqQueue } from "../../src/workers/index.ts";
import { clientOf, plain, say, types } from "../http/ag-ui-client.ts";
import { TOKENS, tokenOf } from "../http/server-support.ts";
import { redisSkip } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";
import { type Fleet, holderOf, openFleet, phasesOf, places } from "./fleet-support.ts";

const LEASE_MS = 2000;

/** The address of one more server of a fleet, which runs nothing itself. */
async function openServer({ manager, queueUrl }: Fleet): Promise<string> {
  const queue = bullmqQueue({ url: queueUrl });
  onTestFinished(() => queue.close());
  const server = await createServer({ manager, agents: [], queue, tokens: TOKENS });
  onTestFinished(() => server.close({ drainMs: 0 }));
  return server.listen();
}

/** A page of a chat that talks to one server, with the earlier messages. */
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

/** The answer as a page shows it: its text, and the state of its calls. */
const answerOf = ({ messages }: Chat<UIMessage>): string =>
  (messages[1]?.parts ?? [])
    .map((part) => (part.type === "text" ? part.text : "state" in part ? `[${part.state}] ` : ""))
    .join("");

/** An AG-UI client, with each state of the shown answer: its text, and whether a call has a result. */
function openReader(url: string, id: string): ReturnType<typeof clientOf> & { readonly shown: string[] } {
  const client = clientOf({ url }, id);
  const shown: string[] = [];
  client.agent.subscribe({
    onMessagesChanged: ({ messages }) => {
      const answer = messages.filter(({ role }) => role !== "user");
      shown.push(answer.map(({ role, content }) => (role === "tool" ? "[result] " : (content ?? ""))).join(""));
    },
  });
  return { ...client, shown };
}

describe.for(places)("with a queue on %s", (place) => {
  test.for([
    {
      when: "in the middle of its words",
      text: "rounds=1 ms=60 talk=20 hold=8",
      call: "output-available",
      until: "7 ",
    },
    {
      when: "in the middle of a call",
      text: "rounds=1 call=60000 ms=300 talk=2",
      call: "output-error",
      until: "",
    },
  ])(
    "a chat whose worker is killed $when ends whole on every server, with no word lost or repeated",
    async ({ text, call, until }, context) => {
      if (place === "redis" && redisSkip !== null) skipBecause(context, redisSkip);
      const fleet = await openFleet(place);
      const [here, there] = [await openServer(fleet), await openServer(fleet)];
      const options = { leaseMs: LEASE_MS, sweepMs: 500 };
      const workers = [await fleet.startWorker(options), await fleet.startWorker(options)];
      const id = crypto.randomUUID();
      // On one place a chat of the AI SDK asks and a client of AG-UI joins, on the other it is the other way round.
      const stayed = openReader(there, id);
      const left = openReader(here, id);
      const reading: Promise<unknown>[] = [];
      if (place === "postgres") {
        reading.push(say(stayed.agent, text));
        await expect.poll(() => types(stayed.told), { interval: 20 }).toContain("STEP_STARTED");
      }
      const page = await openPage(here, id, false);
      reading.push(place === "postgres" ? page.resumeStream() : page.sendMessage({ text }));
      await expect.poll(() => answerOf(page), { interval: 20 }).not.toBe("");
      if (place === "redis") reading.push(stayed.agent.runAgent());
      const dropped = left.agent.runAgent().catch(() => {});
      for (const { agent } of [stayed, left])
        await expect.poll(() => agent.messages.length, { interval: 20 }).toBeGreaterThan(1);
      // Readers that join may have missed the first words, and get them when the answer is complete.
      const heard = () => (place === "postgres" ? stayed.shown.at(-1) : answerOf(page));
      await expect.poll(heard, { interval: 20 }).toContain(until);
      const [holder] = await holderOf(workers, /^round /);
      holder.child.kill("SIGKILL");
      // Of each kind, one joins before another worker has the run, one while it streams the answer again; one has
      // stayed.
      left.agent.abortRun();
      await dropped;
      // The client itself ends an aborted stream with an error.
      expect(types(left.told.splice(0)).filter((type) => /^RUN_/.test(type))).toEqual(["RUN_STARTED", "RUN_ERROR"]);
      const early = await openPage(there, id, true);
      reading.push(early.resumeStream(), left.agent.runAgent());
      await expect.poll(async () => (await phasesOf(fleet.store, id)).length).toBeGreaterThan(1);
      const late = await openPage(there, id, false);
      const came = openReader(here, id);
      await Promise.all([...reading, late.resumeStream(), came.agent.runAgent()]);
      const words = Array.from({ length: Number(/talk=(\d+)/.exec(text)?.[1]) }, (_, piece) => `${piece} `).join("");
      for (const chat of [page, early, late, await openPage(here, id, false)]) {
        expect(chat.error).toBeUndefined();
        expect(chat.messages).toHaveLength(2);
        expect(answerOf(chat)).toBe(`[${call}] ${words}done`);
      }
      const after = openReader(there, id);
      await after.agent.runAgent();
      for (const { agent, told, shown } of [stayed, left, came, after]) {
        // No word was shown twice at any time.
        for (const some of shown) expect(`[result] ${words}done`.startsWith(some), some).toBe(true);
        expect(shown.at(-1)).toBe(`[result] ${words}done`);
        expect(plain(agent.messages)).toEqual(plain(after.agent.messages));
        expect(types(told).filter((type) => /^RUN_/.test(type))).toEqual(["RUN_STARTED", "RUN_FINISHED"]);
        expect(told.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "success" } });
      }
      expect(await phasesOf(fleet.store, id)).toEqual(["started", "started", "finished"]);
    },
  );
});
