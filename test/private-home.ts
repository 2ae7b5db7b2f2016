import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Programs that a test starts must neither read nor change the developer's ~/.skein.
if (process.env["SKEIN_HOME"] === undefined) {
  const home = mkdtempSync(join(tmpdir(), "skein-home-"));
  process.env["SKEIN_HOME"] = home;
  process.on("exit", () => rmSync(home, { recursive: true, force: true }));
}
