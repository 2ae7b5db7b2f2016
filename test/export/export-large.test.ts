import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import { timeAt } from "../sample-log.ts";

const ENTRIES = 25_000;
const ENTRY_CHARACTERS = 2000;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "export-large-"));
  const lines = [JSON.stringify(createHeader({ id: "large", createdAt: timeAt(0) }))];
  for (let seq = 0; seq < ENTRIES; seq++) {
    const said = { role: "user", content: `${seq} `.padEnd(ENTRY_CHARACTERS, "x") };
    const parentId = seq === 0 ? null : `e${seq - 1}`;
    lines.push(JSON.stringify({ type: "message", id: `e${seq}`, parentId, timestamp: timeAt(seq), message: said }));
  }
  await writeFile(join(directory, "2024-01-01T00-00-00-000Z_large.jsonl"), `${lines.join("\n")}\n`);
});

afterAll(() => rm(directory, { recursive: true, force: true }));

test.for(["jsonl", "markdown"])(
  "a session of fifty megabytes is exported as %s with forty megabytes of memory",
  async (format) => {
    const program = fileURLToPath(new URL("programs/export-large.mjs", import.meta.url));
    const args = ["--max-old-space-size=40", program, directory, "large", format];
    const printed = await new Promise<string>((resolve, reject) => {
      execFile(process.execPath, args, (error, stdout) => (error === null ? resolve(stdout) : reject(error)));
    });
    expect(Number(printed)).toBeGreaterThan(ENTRIES * ENTRY_CHARACTERS);
  },
);
