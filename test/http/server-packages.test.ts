import { execFileSync } from "node:child_process";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

test("says what to install where the packages of the server are not", async () => {
  const directory = await mkdtemp(join(tmpdir(), "no-packages-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  // A copy of the package where no other package can be found.
  await cp(fileURLToPath(new URL("../../dist", import.meta.url)), join(directory, "dist"), { recursive: true });
  await writeFile(join(directory, "package.json"), '{ "type": "module" }');
  const script = `const { createServer, hashToken } = await import("./dist/http/index.js");
    console.log(hashToken("x").length);
    await createServer({}).catch(({ code, message }) => console.log(code, message))`;
  const said = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: directory }).toString();
  expect(said).toMatch(/^64\nDRIVER_MISSING .*the packages hono, @hono\/node-server and zod: install them\.\n$/);
});
