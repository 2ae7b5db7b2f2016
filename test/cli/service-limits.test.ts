import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { tamper } from "../doctor/damage.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { runHere, sampleStore } from "./run-skein.ts";

afterEach(() => vi.unstubAllEnvs());

/** A store with a session of Ann that was not used since 2001. */
async function storeWithOldSession(): Promise<string> {
  const store = await sampleStore(async (made) => {
    await made.create(createHeader({ id: "old", userId: "ann" }));
  });
  tamper(store.slice("sqlite:".length), "UPDATE sessions SET updated_at = '2001-01-01T00:00:00.000Z' WHERE id = 'old'");
  return store;
}

/** Runs serve with a token file and requests the session; the output of the start, and the session's status. */
async function statusUnderServe(): Promise<{ readonly printed: string; readonly status: string }> {
  const store = await storeWithOldSession();
  const file = join(await makeDirectory(), "tokens");
  const made = await runHere(["token", "--json", "--token-file", file, "--user", "ann"]);
  const { token } = JSON.parse(made.stdout) as { token: string };
  const stop = new AbortController();
  let printed = "";
  let ended: Promise<unknown> = Promise.resolve();
  const started = new Promise<string>((resolve, reject) => {
    const onOutput = (text: string): void => {
      printed += text;
      const [, url] = /listens on (\S+);[\s\S]*CAPACITY/.exec(printed) ?? [];
      if (url !== undefined) resolve(url);
    };
    const line = ["serve", "--store", store, "--token-file", file, "--port", "0"];
    ended = runHere(line, { signal: stop.signal, onOutput }).then((end) => reject(new Error(end.stderr)));
  });
  try {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${await started}/api/sessions/old`, { headers });
    const { status } = (await response.json()) as { status: string };
    return { printed, status };
  } finally {
    stop.abort();
    await ended.catch(() => {});
  }
}

test("serve --token-file expires no session, and prints the limits of its users at the start", async () => {
  const { printed, status } = await statusUnderServe();
  expect(status).toBe("active");
  expect(printed).toMatch(/A user may have 100 open sessions of 1000 turns each; .* sessions do not expire/);
});

test("serve --token-file expires sessions by SKEIN_SESSION_TTL, and has the limits of the environment", async () => {
  vi.stubEnv("SKEIN_SESSION_TTL", "3600");
  vi.stubEnv("SKEIN_MAX_SESSIONS_PER_USER", "3");
  const { printed, status } = await statusUnderServe();
  expect(status).toBe("expired");
  expect(printed).toMatch(/A user may have 3 open sessions .* idle for 3600 s expires and cannot be reactivated/);
});

test("sweep expires nothing without --idle, even if the environment sets a time", async () => {
  vi.stubEnv("SKEIN_SESSION_TTL", "60");
  const store = await storeWithOldSession();
  expect(await runHere(["sweep", "--store", store])).toEqual({
    code: 2,
    stdout: "",
    stderr: expect.stringMatching(/^sweep needs --idle, as in --idle 24h/),
  });
  const listed = await runHere(["list", "--status", "active", "--json", "--store", store]);
  expect(JSON.parse(listed.stdout)).toMatchObject({ sessions: [{ id: "old" }] });
});
