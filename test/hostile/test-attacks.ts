import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Answer } from "../http/server-support.ts";
import type { Attack } from "./attack.ts";
import { HostileServer, type TimeLimits } from "./hostile-server.ts";

/** The codes that docs/errors.md explains. */
const CODES: ReadonlySet<string> = new Set(
  [...readFileSync("docs/errors.md", "utf8").matchAll(/^\| (?:\d{3} \| )?`([A-Z_]+)`/gm)].map(([, code = ""]) => code),
);

/** Where an attack waits until the server refuses it as too slow; others may come late on a machine that is busy. */
const IMPATIENT: TimeLimits = { headersTimeoutMs: 3000, requestTimeoutMs: 5000 };

/**
 * Creates a test for each attack, all on one server; a server that an attack has ended is started again for the next.
 */
export function testAttacks(rows: readonly Attack[]): void {
  const waits = rows.some(({ expect: { status } }) => [status].flat().includes(408));
  const start = () => HostileServer.start(rows.length, waits ? IMPATIENT : {});
  let server: HostileServer;
  let harmed = false;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    const isWell =
      !harmed ||
      (server.isAlive &&
        (await server.checkUnharmed().then(
          () => true,
          () => false,
        )));
    if (!isWell) {
      await server.close();
      server = await start();
    }
    await server.calm();
  });
  for (const [index, attack] of rows.entries()) {
    test(`${attack.kind}: ${attack.name}`, async () => {
      harmed = true;
      const attacker = server.attacker(attack.who, index);
      const answer = await attack.send(attacker);
      checkAnswer(attack, answer);
      await attack.expect.never?.(attacker, answer);
      await server.checkUnharmed();
      harmed = false;
    });
  }
}

function checkAnswer({ expect: { status, code } }: Attack, answer: Answer): void {
  expect([status].flat(), answer.text.slice(0, 500)).toContain(answer.status);
  if (answer.status < 400) return;
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(answer.text).not.toMatch(/\bat .*\.(?:js|ts):\d|node_modules/);
  expect(CODES).toContain(answer.body.code);
  if (code !== undefined) expect([code].flat()).toContain(answer.body.code);
}
