import type { ReactNode } from "react";
import type { TreeNodeView } from "skein/client";
import { costOfAnswer } from "../../../src/models/shown-cost.ts";
import { bodyOf, type Entry } from "../../../src/session/log/entry.ts";
import { LongText } from "../markdown/long-text.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import { contentText, messageText } from "../request/message-text.ts";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { formatCost } from "../sessions/list/amounts.ts";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";

/** The content of an entry, with its time and model. */
export function EntryDetails({
  sessionId,
  node,
}: {
  readonly sessionId: string;
  readonly node: TreeNodeView;
}): ReactNode {
  const client = useClient();
  const entry = useRequest(node.id, (signal) => client.sessions.entry(sessionId, node.id, { signal }));
  return (
    <div className="tree-details">
      <dl className="tree-facts small">
        <dt>Time</dt>
        <dd>
          <time dateTime={node.timestamp}>{new Date(node.timestamp).toLocaleString()}</time>
        </dd>
        <dt>Position</dt>
        <dd>{node.seq}</dd>
        <dt>Entry</dt>
        <dd>
          <code>{node.id}</code>
        </dd>
        {entry.data !== null &&
          factsOf(entry.data).map(([name, value]) => [<dt key={name}>{name}</dt>, <dd key={`${name} is`}>{value}</dd>])}
      </dl>
      <RequestBoundary requested={entry} what="the entry">
        {(whole) => <LongText key={whole.id} text={saidBy(whole)} />}
      </RequestBoundary>
    </div>
  );
}

function factsOf(entry: Entry): readonly (readonly [string, string])[] {
  const facts: (readonly [string, string])[] = [];
  if (entry.by !== undefined) facts.push(["By", visibleText(entry.by.slice(0, 120))]);
  if (entry.type === "compaction") facts.push(["Tokens before", entry.tokensBefore.toLocaleString("en")]);
  if (entry.type !== "message" || entry.message.role !== "assistant") return facts;
  const { provider, model, usage } = entry.message;
  if (model !== undefined) facts.push(["Model", provider === undefined ? model : `${provider}/${model}`]);
  if (usage !== undefined) facts.push(["Tokens", usage.totalTokens.toLocaleString("en")]);
  const shown = costOfAnswer(entry.message);
  if (shown !== null) facts.push(["Cost", formatCost(shown.cost, shown.computed)]);
  return facts;
}

function saidBy(entry: Entry): string {
  switch (entry.type) {
    case "message":
      return messageText(entry.message);
    case "custom_message":
      return contentText(entry.content);
    case "compaction":
    case "branch_summary":
      return entry.summary;
    default:
      return JSON.stringify(bodyOf(entry), null, 2);
  }
}
