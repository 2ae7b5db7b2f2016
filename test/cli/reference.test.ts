import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cliReference } from "../../src/cli/cli-reference.ts";
import { commands } from "../../src/cli/commands.ts";

test("docs/cli.md matches the commands (run this test with -u to update it)", async () => {
  const page = fileURLToPath(new URL("../../docs/cli.md", import.meta.url));
  await expect(cliReference(commands)).toMatchFileSnapshot(page);
});
