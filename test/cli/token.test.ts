import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hashToken } from "../../src/http/api-token.ts";
import { openTokenFile } from "../../src/http/token-file.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { runHere } from "./run-skein.ts";

async function linesOf(...args: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await runHere(args);
  expect([args, code, stderr]).toEqual([args, 0, ""]);
  return stdout.trimEnd().split("\n");
}

test("token prints a token once with its hash, or adds the hash to a private file", async () => {
  const [made, line] = await linesOf("token", "--user", "ann", "--admin");
  expect(JSON.parse(line as string)).toEqual({ hash: hashToken(made as string), userId: "ann", admin: true });
  const file = join(await makeDirectory(), "tokens");
  const kept: string[] = [];
  for (const user of ["ann", "bob"]) {
    const { stdout, stderr } = await runHere(["token", "--user", user, "--expires-in", "1d", "--token-file", file]);
    kept.push(stdout.trimEnd());
    expect(stderr).not.toContain(stdout.trimEnd());
  }
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const expiresAt = expect.stringMatching(/^\d{4}-/);
  using opened = await openTokenFile(file);
  expect(opened.current()).toEqual([
    { hash: hashToken(kept[0] as string), userId: "ann", expiresAt },
    { hash: hashToken(kept[1] as string), userId: "bob", expiresAt },
  ]);
  expect(await readFile(file, "utf8")).not.toContain(kept[0]);
  expect((await runHere(["token", "--expires-in", "0d"])).code).toBe(2);
  for (const [given, may] of [
    ["none", { approve: false, run: false, files: false }],
    ["run,files", { approve: false, run: true, files: true }],
    ["approve,run,files", undefined],
  ] as const) {
    const [, limited] = await linesOf("token", "--may", given);
    expect((JSON.parse(limited as string) as { may?: unknown }).may).toEqual(may);
  }
  expect((await runHere(["token", "--may", "everything"])).code).toBe(2);
});

test("a token file with an invalid line is rejected with the line number, without its content", async () => {
  const file = join(await makeDirectory(), "tokens");
  const hash = hashToken("t");
  for (const line of [
    "secret",
    "{}",
    `{"hash":"${hash}"}`,
    `{"hash":"${hash}","userId":"a","expiresAt":"soon"}`,
    `{"hash":"x","userId":"a"}`,
    `{"hash":"${hash}","userId":"a","may":{"aprove":false}}`,
    `{"hash":"${hash}","userId":"a","may":["run"]}`,
    `{"hash":"${hash}","userId":"a","mai":{"run":false}}`,
  ]) {
    await writeFile(file, `# who may come in\n\n{"hash":"${hash}","userId":"a"}\n${line}\n`);
    await expect(openTokenFile(file)).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringMatching(
        /^Line 4 of the token file "[^"]+" was not made by skein token; make a new one with it\.$/,
      ),
    });
  }
  await writeFile(file, "# nobody\n");
  await expect(openTokenFile(file)).rejects.toMatchObject({ code: "INVALID_OPTION" });
});
