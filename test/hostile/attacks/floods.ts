import type { Answer } from "../../http/server-support.ts";
import { type Attack, type Attacker, at, attacks, must } from "../attack.ts";
import { runIn } from "../attackers.ts";
import { chain, header, said } from "../log-lines.ts";

const FULL = { status: 409, code: "CAPACITY" } as const;
const OVER_QUOTA = { status: 409, code: "SESSIONS_QUOTA_EXCEEDED" } as const;
const TOO_MANY_STREAMS = { status: 429, code: "TOO_MANY_STREAMS" } as const;

/** Repeats a request until it is refused; returns the refusal, or the last answer. */
async function untilRefused(times: number, act: (index: number) => Promise<Answer>): Promise<Answer> {
  let answer = await act(0);
  for (let index = 1; index < times && answer.status < 400; index++) answer = await act(index);
  return answer;
}

/** Opens event streams, each on a new connection, and keeps them open until the last was tried. */
async function openStreams(attacker: Attacker, paths: readonly string[]): Promise<Answer> {
  const leave = new AbortController();
  try {
    let last: Answer | null = null;
    for (const path of paths) {
      const response = await fetch(`${attacker.url}${path}`, {
        signal: leave.signal,
        headers: { authorization: `Bearer ${attacker.token}` },
      });
      const text = response.status < 400 ? "" : await response.text();
      last = { status: response.status, headers: response.headers, text, body: text === "" ? null : JSON.parse(text) };
      if (last.status >= 400) break;
    }
    return last as Answer;
  } finally {
    leave.abort();
  }
}

export const streamFloods: readonly Attack[] = attacks(
  "floods of event streams",
  {
    name: "watches one session 60 times at once",
    who: "user",
    async send(attacker) {
      const path = at(await attacker.session(), "/watch");
      return openStreams(
        attacker,
        Array.from({ length: 60 }, () => path),
      );
    },
    expect: TOO_MANY_STREAMS,
  },
  {
    name: "watches 30 sessions twice at once",
    who: "user",
    async send(attacker) {
      const paths: string[] = [];
      for (let index = 0; index < 30; index++) paths.push(at(await attacker.session(), "/watch"));
      return openStreams(attacker, [...paths, ...paths]);
    },
    expect: TOO_MANY_STREAMS,
  },
  {
    name: "follows one run 60 times at once",
    who: "user",
    async send(attacker) {
      const { body } = await attacker.call("POST", at(await attacker.session(), "/runs"), { input: "wait" });
      const run = at(body.sessionId, `/runs/${body.runId}`);
      const answer = await openStreams(
        attacker,
        Array.from({ length: 60 }, () => `${run}/events`),
      );
      await attacker.call("POST", `${run}/cancel`, {});
      return answer;
    },
    expect: TOO_MANY_STREAMS,
  },
  {
    name: "opens and leaves 200 streams, one after the other, which is no flood",
    who: "user",
    async send(attacker) {
      const path = at(await attacker.session(), "/watch");
      return untilRefused(200, () => attacker.call("GET", path));
    },
    expect: { status: 200 },
  },
);

export const runFloods: readonly Attack[] = attacks(
  "floods of runs",
  {
    name: "starts 25 runs that never end, each in a session of its own, and has ten of them at once",
    who: "user",
    async send(attacker) {
      const runs: string[] = [];
      for (let index = 0; index < 25; index++) {
        const { body } = await attacker.call("POST", at(await attacker.session(), "/runs"), { input: "wait" });
        runs.push(at(body.sessionId, `/runs/${body.runId}`));
      }
      const running = await attacker.call("GET", "/api/runs?state=running");
      await Promise.all(runs.map((run) => attacker.call("POST", `${run}/cancel`, {})));
      must(running.body.items.length <= 10, "A user has more runs at once than may be.");
      return running;
    },
    expect: { status: 200 },
  },
  {
    name: "starts two runs in one session",
    who: "user",
    async send(attacker) {
      const path = at(await attacker.session(), "/runs");
      const first = await attacker.call("POST", path, { input: "wait" });
      const second = await attacker.call("POST", path, { input: "wait" });
      await attacker.call("POST", `${path}/${first.body.runId}/cancel`, {});
      return second;
    },
    expect: { status: 409, code: "SESSION_BUSY" },
  },
  {
    name: "lets 100 runs wait behind one that never ends",
    who: "user",
    async send(attacker) {
      const path = at(await attacker.session(), "/runs");
      const first = await attacker.call("POST", path, { input: "wait" });
      const refused = await untilRefused(100, () => attacker.call("POST", path, { input: "wait", ifBusy: "enqueue" }));
      const { body } = await attacker.call("GET", path);
      for (const { runId } of body.items ?? body) await attacker.call("POST", `${path}/${runId}/cancel`, {});
      await attacker.call("POST", `${path}/${first.body.runId}/cancel`, {});
      return refused;
    },
    expect: FULL,
  },
  {
    name: "says 300 things to a run that hears none of them",
    who: "user",
    async send(attacker) {
      const path = at(await attacker.session());
      const { body } = await attacker.call("POST", `${path}/runs`, { input: "wait" });
      const last = await untilRefused(300, () => attacker.call("POST", `${path}/steer`, { content: big(1000) }));
      await attacker.call("POST", `${path}/runs/${body.runId}/cancel`, {});
      return last;
    },
    expect: { status: [200, 409] },
  },
  {
    name: "recovers one session 30 times at once",
    who: "user",
    async send(attacker) {
      const id = await attacker.session();
      const answers = await Promise.all(
        Array.from({ length: 30 }, () => attacker.call("POST", at(id, "/recover"), {})),
      );
      return answers.find(({ status }) => status >= 500) ?? (answers[0] as Answer);
    },
    expect: { status: 204 },
  },
);

export const sessionFloods: readonly Attack[] = attacks(
  "floods of sessions",
  {
    name: "makes 60 sessions",
    who: "user",
    send: (attacker) => untilRefused(60, () => attacker.call("POST", "/api/sessions", {})),
    expect: FULL,
  },
  {
    name: "imports 60 sessions",
    who: "user",
    send: (attacker) => untilRefused(60, () => attacker.importLog([header(), ...chain(said("Hi."))])),
    expect: FULL,
  },
  {
    name: "imports 60 sessions at once",
    who: "user",
    async send(attacker) {
      const lines = [header(), ...chain(said("Hi."))];
      await Promise.all(Array.from({ length: 60 }, () => attacker.importLog(lines)));
      return attacker.importLog(lines);
    },
    expect: {
      ...FULL,
      async never(attacker) {
        const { body } = await attacker.call("GET", "/api/sessions?limit=1000");
        must(body.items.length <= 40, `There are ${body.items.length} sessions of at most 40.`);
      },
    },
  },
  {
    name: "makes sessions, deletes them and brings all of them back",
    who: "user",
    async send(attacker) {
      const ids: string[] = [];
      for (let index = 0; index < 45; index++) {
        const id = await attacker.session();
        await attacker.call("DELETE", at(id));
        ids.push(id);
      }
      return untilRefused(45, (index) => attacker.call("POST", at(ids[index] as string, "/undelete"), {}));
    },
    expect: FULL,
  },
);

export const storedFloods: readonly Attack[] = attacks(
  "floods of stored sessions",
  {
    name: "makes 200 sessions and closes each",
    who: "user",
    send: (attacker) =>
      untilRefused(200, async () => {
        const made = await attacker.call("POST", "/api/sessions", {});
        return made.status < 400 ? attacker.call("POST", at(made.body.header.id, "/close"), {}) : made;
      }),
    expect: OVER_QUOTA,
  },
  {
    name: "imports 200 sessions and deletes each",
    who: "user",
    send: (attacker) =>
      untilRefused(200, async () => {
        const made = await attacker.importLog([header(), ...chain(said("Hi."))]);
        return made.status < 400 ? attacker.call("DELETE", at(made.body.header.id)) : made;
      }),
    expect: OVER_QUOTA,
  },
);

export const forkFloods: readonly Attack[] = attacks(
  "floods of forks",
  {
    name: "forks one session 60 times",
    who: "user",
    async send(attacker) {
      const id = await attacker.session();
      return untilRefused(60, (index) => attacker.call("POST", at(id, "/forks"), { branchName: `b${index}` }));
    },
    expect: FULL,
  },
  {
    name: "forks a fork of a fork, 60 times",
    who: "user",
    async send(attacker) {
      let id = await attacker.session();
      return untilRefused(60, async () => {
        const forked = await attacker.call("POST", at(id, "/forks"), { branchName: "deeper" });
        if (forked.status === 201) id = forked.body.header.id;
        return forked;
      });
    },
    expect: FULL,
  },
);

const big = (bytes: number) => "x".repeat(bytes);

export const variableFloods: readonly Attack[] = attacks(
  "floods of variables",
  {
    name: "sets a variable of 300 KB",
    who: "user",
    send: async (attacker) =>
      attacker.call("PATCH", at(await attacker.session()), { variables: { set: { x: big(300_000) } } }),
    expect: FULL,
  },
  {
    name: "sets 100 KB after 100 KB",
    who: "user",
    async send(attacker) {
      const path = at(await attacker.session());
      return untilRefused(10, (index) =>
        attacker.call("PATCH", path, { variables: { set: { [`x${index}`]: big(100_000) } } }),
      );
    },
    expect: FULL,
  },
  {
    name: "appends 100 KB after 100 KB as entries",
    who: "user",
    async send(attacker) {
      const path = at(await attacker.session(), "/entries");
      return untilRefused(10, (index) => {
        const entries = [{ type: "variables", set: { [`x${index}`]: big(100_000) }, unset: [] }];
        return attacker.call("POST", path, { entries });
      });
    },
    expect: FULL,
  },
  {
    name: "imports variables of 4 MB, of which no listing says a word",
    who: "user",
    send: (attacker) =>
      attacker.importLog([header(), ...chain({ type: "variables", set: { x: big(4_000_000) }, unset: [] })]),
    expect: {
      ...FULL,
      async never(attacker) {
        const { text } = await attacker.call("GET", "/api/sessions");
        must(text.length < 100_000, `A listing has ${text.length} characters.`);
      },
    },
  },
  {
    name: "fills 40 sessions with variables, so that nobody can list them",
    who: "user",
    async send(attacker) {
      for (let index = 0; index < 39; index++) {
        const path = at(await attacker.session());
        await attacker.call("PATCH", path, { variables: { set: { x: big(200_000) } } });
      }
      return attacker.call("GET", "/api/sessions?limit=1000");
    },
    expect: {
      status: 200,
      never: (_attacker, { text }) => must(text.length < 500_000, `A listing has ${text.length} characters.`),
    },
  },
);

export const nameFloods: readonly Attack[] = attacks(
  "names and labels without an end",
  {
    name: "names a session with 900 KB",
    who: "user",
    send: (attacker) => attacker.post("/api/sessions", JSON.stringify({ name: big(900_000) })),
    expect: { status: 400, code: "INVALID_REQUEST" },
  },
  {
    name: "names a session anew with 2,000 characters",
    who: "user",
    send: async (attacker) => attacker.call("PATCH", at(await attacker.session()), { name: big(2000) }),
    expect: { status: 400 },
  },
  {
    name: "labels an entry with 900 KB",
    who: "user",
    async send(attacker) {
      const id = await attacker.session();
      await attacker.call("POST", at(id, "/turns"), { turnId: "t", role: "user", content: "x" });
      return attacker.call("PUT", at(id, "/labels/t"), { label: big(900_000) });
    },
    expect: { status: 400, code: "INVALID_REQUEST" },
  },
  {
    name: "names a fork with 600 characters",
    who: "user",
    send: async (attacker) => attacker.call("POST", at(await attacker.session(), "/forks"), { branchName: big(600) }),
    expect: { status: 400 },
  },
  {
    name: "closes a session for a reason of 900 KB",
    who: "user",
    send: async (attacker) => attacker.call("POST", at(await attacker.session(), "/close"), { reason: big(900_000) }),
    expect: { status: 400, code: "INVALID_REQUEST" },
  },
  {
    name: "stops a run for a reason of 20,000 characters",
    who: "user",
    async send(attacker) {
      const run = await runIn(attacker, await attacker.session(), "Hello.");
      return attacker.call("POST", at(run.body.sessionId, `/runs/${run.body.runId}/cancel`), { reason: big(20_000) });
    },
    expect: { status: 400 },
  },
);
