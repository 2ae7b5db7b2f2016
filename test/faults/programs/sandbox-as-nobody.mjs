// Uses local sandboxes as a user without rights, and prints the results as one line of JSON. SKEIN_HOME=<directory that
// anyone may write to> node sandbox-as-nobody.mjs
import { chmodSync, existsSync } from "node:fs";
import { join } from "node:path";
import { localBackend } from "skein/sandbox";

if (process.getuid?.() === 0) {
  process.setgid?.(65534);
  process.setuid?.(65534);
}
const sandbox = await localBackend.open({});
const paths = async () => (await sandbox.list(".", { recursive: true })).map(({ path }) => path);
await sandbox.exec("mkdir -p closed/below; echo x > closed/below/file; chmod 555 closed/below closed; echo y > plain");
const snapshot = await sandbox.snapshot();
await sandbox.exec("chmod 700 closed; touch closed/new; chmod 000 closed; echo z > plain; touch extra");
await sandbox.restore(snapshot);
const restored = { paths: await paths(), mode: (await sandbox.exec("stat -c %a closed; cat plain")).stdout };

await sandbox.exec("touch extra");
chmodSync(join(process.env.SKEIN_HOME ?? "", "snapshots", String(snapshot.id), "files/plain"), 0o000);
const failure = await sandbox.restore(snapshot).then(
  () => "restored",
  (error) => error.kind,
);
const afterFailure = await paths();

await sandbox.exec("chmod 000 closed");
await sandbox.close();
const left = existsSync(join(sandbox.workingDir, ".."));
const deleted = await localBackend.deleteSnapshot?.(snapshot);
console.log(JSON.stringify({ restored, failure, afterFailure, left, deleted }));
