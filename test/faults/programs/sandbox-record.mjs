// Records sandboxes in a registry, one after the other.
// node sandbox-record.mjs <path of the registry's file> <name> <count>
import { PersistentSandboxRegistry } from "skein/sandbox";

const [path = "", name = "", count = "0"] = process.argv.slice(2);
const registry = new PersistentSandboxRegistry({ path });
for (let index = 0; index < Number(count); index++) {
  await registry.record({ backend: "local", id: `${name}-${index}`, spec: {} });
}
