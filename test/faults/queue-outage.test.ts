import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { Client } from "pg";
import { describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { startPostgres } from "../../scripts/postgres.mjs";
import { redisMissing, startRedis } from "../../scripts/redis.mjs";
import { bullmqQueue } from "../../src/workers/index.ts";
import { quiet } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";
import { says } from "../workers/fleet-support.ts";
import { type Running, start } from "./program-support.ts";

/** How long an event loop may not turn, on a busy machine. */
const BEAT_MS_MAX = 10_000;
/** The time limit for closing a queue, whatever the state of its server. */
const CLOSE_MS_MAX = 10_000;
/** The length of the outage during which processor time is measured, and the share of it that may be used. */
const AWAY_MS = 2000;
const USED_SHARE_MAX = 0.15;

const servers = {
  redis: {
    open: async (context: TestContext) => {
      const missing = redisMissing();
      if (missing !== null) skipBecause(context, missing);
      return startRedis();
    },
    /** Makes it a replica of a server that does not exist. */
    refuse: async (url: string) => {
      const client = quiet(new Redis(url));
      await client.replicaof("127.0.0.1", 1);
      client.disconnect();
    },
  },
  postgres: {
    open: () => startPostgres(),
    refuse: async (url: string) => {
      const client = new Client(url);
      await client.connect();
      await client.query("ALTER SYSTEM SET default_transaction_read_only = on");
      await client.query("SELECT pg_reload_conf()");
      await client.end();
    },
  },
};

type Server = Awaited<ReturnType<typeof startRedis>>;

async function crash(server: Server): Promise<void> {
  server.crash();
  await server.halt();
}

/** Resolves with the next beat of a program: the processor time that it has used. Fails where its event loop does not turn. */
async function beat(program: Running): Promise<number> {
  const after = program.lines().length;
  const late = pause(BEAT_MS_MAX, "late" as const, { ref: false });
  const line = await Promise.race([says(program, /^beat /, after), late]);
  expect(line, "the event loop of a listener does not turn").not.toBe("late");
  return Number(line.slice("beat ".length));
}

async function listeners(url: string, count: number, ...notifies: "notifies"[]): Promise<Running[]> {
  const args = [url, "helper", ...notifies];
  const programs = Array.from({ length: count }, () => start("../../workers/programs/listen.mjs", args));
  await Promise.all(programs.map((program) => says(program, /^ready$/)));
  return programs;
}

const isHeardBy = (programs: readonly Running[], line: string): boolean =>
  programs.some((program) => program.lines().includes(line));

describe.for(Object.entries(servers))("a queue on %s", ([, { open, refuse }]) => {
  const given = async (context: TestContext): Promise<Server> => {
    const server = await open(context);
    onTestFinished(() => server.stop());
    return server;
  };

  test("whose server is killed and restarted repeatedly freezes no process, and works each time it is back", async (context) => {
    const server = await given(context);
    const programs = await listeners(server.url, 3, "notifies");
    const queue = bullmqQueue({ url: server.url });
    onTestFinished(() => queue.close());
    for (let restart = 1; restart <= 3; restart++) {
      await crash(server);
      await expect(queue.notify("session", { runner: "helper" })).rejects.toMatchObject({ code: "STORE_FAILED" });
      await Promise.all(programs.map(beat));
      await server.resume();
      await Promise.all(programs.map(beat));
      const notifyAll = async (): Promise<boolean> => {
        for (const runner of ["helper", "helper.other"]) await queue.notify(`session-${restart}`, { runner });
        await queue.publish("helper.topic", Buffer.from(`back-${restart}`));
        return true;
      };
      await expect.poll(() => notifyAll().catch(() => false)).toBe(true);
      await expect.poll(() => isHeardBy(programs, `heard session-${restart}`)).toBe(true);
      const published = async (): Promise<boolean> => {
        await queue.publish("helper.topic", Buffer.from(`back-${restart}`));
        return programs.every((program) => program.lines().includes(`topic back-${restart}`));
      };
      await expect.poll(published).toBe(true);
    }
  });

  test.for(["is killed", "refuses writes", "says nothing"] as const)(
    "whose server %s waits for it without using the processor, and is closed within ten seconds",
    async (how, context) => {
      const server = await given(context);
      const [program] = (await listeners(server.url, 1)) as [Running];
      if (how === "is killed") await crash(server);
      else if (how === "refuses writes") await refuse(server.url);
      else {
        server.crash("SIGSTOP");
        onTestFinished(() => server.crash("SIGCONT"));
      }
      await beat(program);
      const [since, before] = [performance.now(), await beat(program)];
      await pause(AWAY_MS);
      const used = (await beat(program)) - before;
      expect(used / (performance.now() - since)).toBeLessThan(USED_SHARE_MAX);
      program.child.stdin.write("close\n");
      const closed = await says(program, /^closed /);
      expect(Number(closed.slice("closed ".length))).toBeLessThan(CLOSE_MS_MAX);
      // No remaining handle keeps the process alive.
      await program.ended;
    },
  );
});
