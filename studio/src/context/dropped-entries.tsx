import { type ReactNode, useState } from "react";
import type { Entry } from "../../../src/session/log/entry.ts";
import { contentText, messageText } from "../request/message-text.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import { addressOf } from "../shell/route.ts";

const PAGE = 50;
const LINE_CHARACTERS = 200;

/** The entries that a compaction replaced, latest last. */
export function DroppedEntries({
  sessionId,
  compactionId,
}: {
  readonly sessionId: string;
  readonly compactionId: string;
}): ReactNode {
  const client = useClient();
  const [limit, setLimit] = useState(PAGE);
  const dropped = useRequest(`${compactionId} ${limit}`, async (signal) => {
    const entry = await client.sessions.entry(sessionId, compactionId, { signal });
    const before = entry.type === "compaction" ? entry.firstKeptEntryId : compactionId;
    return client.sessions.path(sessionId, { before, limit }, { signal });
  });
  return (
    <RequestBoundary requested={dropped} what="the replaced entries">
      {({ items, next }) => (
        <>
          {next !== null && (
            <button type="button" className="button small" onClick={() => setLimit(limit + 4 * PAGE)}>
              Show earlier entries
            </button>
          )}
          <ul className="context-dropped small">
            {items.map((entry) => (
              <li key={entry.id}>
                <a href={addressOf({ page: "session", id: sessionId, view: "talk", options: { entry: entry.id } })}>
                  {entry.type === "message" ? entry.message.role : entry.type.replaceAll("_", " ")}
                </a>{" "}
                <bdi>{visibleText(lineOf(entry))}</bdi>
              </li>
            ))}
          </ul>
          {items.length === 0 && <p className="small soft">There is no entry before the kept ones.</p>}
        </>
      )}
    </RequestBoundary>
  );
}

function lineOf(entry: Entry): string {
  if (entry.type === "message") return messageText(entry.message).slice(0, LINE_CHARACTERS);
  if (entry.type === "custom_message") return contentText(entry.content).slice(0, LINE_CHARACTERS);
  return entry.type === "compaction" || entry.type === "branch_summary" ? entry.summary.slice(0, LINE_CHARACTERS) : "";
}
