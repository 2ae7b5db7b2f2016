import { type ReactNode, useEffect, useState } from "react";
import type { ContextPartView, SessionsClient } from "skein/client";
import { messageText } from "../request/message-text.ts";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";

type EditPreview = Awaited<ReturnType<SessionsClient["previewEdit"]>>;

/** Leaves a message out of the context, shortens it, or restores the original. Previews the saved tokens and the lost cache. */
export function EditPart({
  sessionId,
  part: { entryId, message, edit },
  onChanged,
}: {
  readonly sessionId: string;
  readonly part: ContextPartView & { readonly entryId: string };
  readonly onChanged: () => void;
}): ReactNode {
  const client = useClient();
  const [text, setText] = useState<string | null>(null);
  const replacement = text === null ? null : { ...message, content: text };
  const omit = useAction(async () => {
    await client.sessions.edit(sessionId, { entryId });
    onChanged();
  });
  const shorten = useAction(async () => {
    await client.sessions.edit(sessionId, { entryId, message: replacement });
    onChanged();
  });
  const busy = omit.busy || shorten.busy;
  const error = omit.error ?? shorten.error;
  return (
    <div className="context-edit small">
      {text !== null && (
        <label>
          What the model sees instead
          <textarea className="field" rows={4} value={text} onChange={(event) => setText(event.target.value)} />
        </label>
      )}
      <div className="context-buttons">
        {text === null ? (
          <>
            <button type="button" className="button small" disabled={busy} onClick={() => void omit.run()}>
              Leave out
            </button>
            <button
              type="button"
              className="button small"
              disabled={busy}
              onClick={() => setText(messageText(message))}
            >
              Shorten
            </button>
          </>
        ) : (
          <>
            <button type="button" className="button small" disabled={busy} onClick={() => void shorten.run()}>
              Use this text
            </button>
            <button type="button" className="button small" disabled={busy} onClick={() => setText(null)}>
              Cancel
            </button>
          </>
        )}
        {edit !== undefined && <UndoEdit sessionId={sessionId} editId={edit.editId} onChanged={onChanged} />}
      </div>
      <Numbers
        sessionId={sessionId}
        entryId={entryId}
        message={replacement}
        what={text === null ? "Left out" : "With this text"}
      />
      {error !== null && (
        <p role="alert" className="context-problem">
          {error.message}
        </p>
      )}
    </div>
  );
}

/** Takes an edit back. */
export function UndoEdit({
  sessionId,
  editId,
  onChanged,
}: {
  readonly sessionId: string;
  readonly editId: string;
  readonly onChanged: () => void;
}): ReactNode {
  const client = useClient();
  const undo = useAction(async () => {
    await client.sessions.undoEdit(sessionId, editId);
    onChanged();
  });
  return (
    <>
      <button type="button" className="button small" disabled={undo.busy} onClick={() => void undo.run()}>
        Bring back
      </button>
      {undo.error !== null && (
        <span role="alert" className="context-problem small">
          {undo.error.message}
        </span>
      )}
    </>
  );
}

/** How long a text must stay unchanged before its numbers are asked for. */
const TYPING_MS = 400;

/** Shows the tokens that an edit saves in each later request, and the cached tokens that are lost once. */
export function Numbers({
  sessionId,
  entryId,
  message = null,
  what,
}: {
  readonly sessionId: string;
  readonly entryId: string;
  readonly message?: ContextPartView["message"] | null;
  readonly what: string;
}): ReactNode {
  const client = useClient();
  const [found, setFound] = useState<EditPreview | null>(null);
  const asked = JSON.stringify({ entryId, message });
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const timer = setTimeout(() => {
      client.sessions.previewEdit(sessionId, JSON.parse(asked), { signal }).then(setFound, () => setFound(null));
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [client, sessionId, asked]);
  if (found === null) return null;
  const { tokensSaved, prefixLost } = found;
  const count = (tokens: number): string => Math.abs(tokens).toLocaleString("en");
  return (
    <p className="soft" aria-live="polite">
      {what}: each later request has {count(tokensSaved)} tokens {tokensSaved < 0 ? "more" : "fewer"}, and a cache reads{" "}
      {count(prefixLost)} tokens anew, once.
    </p>
  );
}
