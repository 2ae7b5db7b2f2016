import { useEffect, useRef, useState } from "react";
import { useClient } from "../request/use-client.ts";
import { applyLabels, type Labels } from "./apply-labels.ts";

const NONE: Labels = new Map();

/** The labels of a session: once from its tree, then from the entries that came since, as the tree can be large. Not before they are wanted. */
export function useLabels(sessionId: string, revision: number, wanted: boolean): Labels {
  const client = useClient();
  const [labels, setLabels] = useState(NONE);
  const seen = useRef<{ readonly sessionId: string; readonly version: number } | null>(null);
  useEffect(() => {
    if (!wanted) return;
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const load = async (): Promise<void> => {
      const known = seen.current?.sessionId === sessionId ? seen.current.version : null;
      if (known === null) {
        const { nodes, version } = await client.sessions.tree(sessionId, options);
        setLabels(new Map(nodes.flatMap(({ id, label }) => (label === null ? [] : [[id, label] as const]))));
        seen.current = { sessionId, version };
        return;
      }
      let after = known - 1;
      for await (const entry of client.sessions.entriesAll(sessionId, { after }, options)) {
        after = entry.seq;
        setLabels((before) => applyLabels(before, [entry]));
        seen.current = { sessionId, version: after + 1 };
      }
    };
    // Labels are an aid: whoever cannot have them is told why by the transcript itself.
    load().catch(() => {});
    return () => controller.abort();
  }, [client, sessionId, revision, wanted]);
  return labels;
}
