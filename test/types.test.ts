import { execFile } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root } from "../scripts/run.mjs";
import { typeConfigurations } from "../scripts/setup.mjs";

test.for(typeConfigurations)("the compiler finds no error in the code of %s", async (configuration) => {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const errors = await new Promise<string>((resolve) => {
    execFile(process.execPath, [compiler, "-p", configuration], { cwd: root }, (error, stdout, stderr) =>
      resolve(error === null ? "" : `${stdout}${stderr}` || error.message),
    );
  });
  expect(errors).toBe("");
});
