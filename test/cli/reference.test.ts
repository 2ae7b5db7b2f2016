import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { cliReference } from "../../src/cli/cli-reference.ts";
import { commands } from "../../src/cli/commands.ts";

test("docs/cli.md says what the commands say (run this test with -u to make it anew)", async () => {
  const page = fileURLToPath(new URL("../../docs/cli.md", import.meta.url));
  await expect(cliReference(commands)).toMatchFileSnapshot(page);
});
