import { sandboxBackend } from "../../session/sandbox/sandbox-backends.ts";
import type { SessionStore } from "../../session/store.ts";
import { listPages } from "../../stores/complete/list-pages.ts";
import { canonicalJson } from "../../stores/doctor/log-digest.ts";

/**
 * Snapshots of this machine that no checkpoint of a store holds, each by its name. One that another store on the machine
 * holds is among them, and so is one of a deleted session, whose checkpoints nobody can list.
 */
export async function unheldSnapshots(store: SessionStore): Promise<readonly string[]> {
  const held = new Set<string>();
  for await (const { items } of listPages(store)) {
    for (const { header } of items)
      for (const { sandboxSnapshot } of await store.listCheckpoints(header.id))
        if (sandboxSnapshot !== undefined) held.add(canonicalJson(sandboxSnapshot));
  }
  const local = await sandboxBackend("local");
  const snapshots = (await local.listSnapshots?.()) ?? [];
  return snapshots.flatMap((snapshot) =>
    held.has(canonicalJson({ backend: "local", snapshot })) ? [] : String(snapshot["id"]),
  );
}
