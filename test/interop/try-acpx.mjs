import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const skein = fileURLToPath(new URL("../../dist/cli/skein.js", import.meta.url));

/**
 * Runs `skein acp` with acpx, a client of the Agent Client Protocol for scripts: it allows a call and refuses one, sets
 * which calls need approval, and resumes the session in another process.
 * @param {readonly string[]} command what starts acpx
 */
export async function tryAcpx([node = "", ...file]) {
  const home = await mkdtemp(join(tmpdir(), "skein-acpx-"));
  const cwd = join(home, "project");
  const agent = `${process.execPath} --no-warnings ${skein} acp --store sqlite:${join(home, "skein.db")}`;
  /** @param {readonly string[]} args */
  const acpx = async (...args) => {
    const env = { PATH: process.env.PATH, HOME: home };
    const { stdout } = await run(node, [...file, "--agent", agent, ...args], { cwd, env, timeout: 120_000 });
    return stdout;
  };
  try {
    await mkdir(cwd);
    assert.match(await acpx("--approve-all", "exec", "write hi to a.txt"), /I wrote a\.txt\.\s+\[done\] end_turn/);
    assert.equal(await readFile(join(cwd, "a.txt"), "utf8"), "hi");
    // The exit code is 5 if a call was refused.
    await assert.rejects(acpx("--deny-all", "exec", "write bye to a.txt"), {
      code: 5,
      stdout: /The user does not want that/,
    });
    assert.equal(await readFile(join(cwd, "a.txt"), "utf8"), "hi");
    await acpx("sessions", "new");
    await acpx("set-mode", "writes");
    assert.match(await acpx("--approve-all", "prompt", "write three to b.txt"), /I wrote b\.txt\./);
    assert.match(await acpx("prompt", "read b.txt"), /b\.txt says: three/);
  } finally {
    await acpx("sessions", "close").catch(() => {});
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  }
}
