import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef } from "react";
import type { Content } from "../../../src/session/message.ts";
import { ClientError, type SessionView } from "skein/client";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { useMay } from "../request/use-me.ts";
import { useRequest } from "../request/use-request.ts";
import { AttachmentList } from "./attachment-list.tsx";
import { contentOf } from "./attachment.ts";
import { type ComposerState, composerState } from "./composer-state.ts";
import { Pickers } from "./pickers.tsx";
import type { RunChoice } from "./run-choice.ts";
import { type Delivery, DeliveryPicker, useDelivery } from "./delivery-picker.tsx";
import { useAttachments } from "./use-attachments.ts";
import { useDraft } from "./use-draft.ts";
import type { Run } from "./use-run.ts";
import "./run.css";
import "./composer.css";

const RETRY_MS = 3000;

/** The message field: starts a run, or sends a message to the active one. */
export function Composer({
  session,
  run,
  choice,
  onChoice,
  onSaid,
}: {
  readonly session: SessionView;
  readonly run: Run;
  readonly choice: RunChoice;
  readonly onChoice: (choice: RunChoice) => void;
  /** Called with a message that was sent to the active run. */
  readonly onSaid: (how: Delivery, content: Content) => void;
}): ReactNode {
  const client = useClient();
  const catalogue = useRequest("catalogue", (signal) => client.catalogue({ signal }));
  const { error: notOffered, reload: askAgain } = catalogue;
  useEffect(() => {
    if (notOffered === null) return;
    const timer = setTimeout(askAgain, RETRY_MS);
    return () => clearTimeout(timer);
  }, [notOffered, askAgain]);
  const [text, setText] = useDraft(session.header.id);
  const [how, setHow] = useDelivery();
  const attachments = useAttachments(session.header.id);
  const file = useRef<HTMLInputElement>(null);
  const isGroup = run.state.speaker !== null || run.state.rounds.some(({ agent }) => agent !== null);
  const state = composerState(session, run, catalogue.data, isGroup, useMay().run);
  const send = useAction(async (content: Content) => {
    if (state.can === "start" || run.id === null) return run.start(content, choice);
    try {
      await client.runs[how](session.header.id, content);
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== "RUN_ENDED") throw error;
      // The run ended before this page was notified; the user still expects an answer.
      return run.start(content, choice);
    }
    onSaid(how, content);
  });
  const isEmpty = (text.trim() === "" && attachments.items.length === 0) || attachments.busy;
  const submit = async (event?: FormEvent): Promise<void> => {
    event?.preventDefault();
    if (isEmpty || send.busy || state.can === "nothing") return;
    if (!(await send.run(contentOf(text.trim(), attachments.items)))) return;
    setText("");
    attachments.clear();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    // Enter also confirms a character of an input method; that must not send.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void submit();
  };
  const problem = send.error?.message ?? attachments.problem ?? catalogue.error?.message ?? null;
  return (
    <form
      className="run-composer"
      aria-label="Message"
      onSubmit={(event) => void submit(event)}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        // What is dropped anywhere else is imported as sessions.
        event.stopPropagation();
        attachments.add([...event.dataTransfer.files]);
      }}
    >
      <AttachmentList items={attachments.items} onRemove={attachments.remove} />
      <div className="run-text" data-text={`${text}\n`}>
        <textarea
          className="run-field"
          aria-label="Message"
          aria-describedby={state.can === "nothing" ? "run-reason" : undefined}
          placeholder={placeholderOf(state)}
          rows={1}
          dir="auto"
          value={text}
          disabled={state.can === "nothing"}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            const files = [...event.clipboardData.files];
            if (files.length > 0) attachments.add(files);
          }}
        />
      </div>
      {problem !== null && (
        <p role="alert" className="run-problem small">
          {problem}
        </p>
      )}
      <div className="run-tools">
        {state.can === "nothing" ? (
          <p id="run-reason" className="small soft run-reason">
            {state.reason}
          </p>
        ) : (
          <>
            {state.can === "say" ? (
              <DeliveryPicker how={how} onHow={setHow} />
            ) : (
              catalogue.data !== null && <Pickers catalogue={catalogue.data} choice={choice} onChoice={onChoice} />
            )}
            <input
              ref={file}
              type="file"
              multiple
              hidden
              aria-label="Files"
              onChange={(event) => {
                attachments.add([...(event.target.files ?? [])]);
                event.target.value = "";
              }}
            />
            <button type="button" className="button" onClick={() => file.current?.click()}>
              Attach files
            </button>
          </>
        )}
        <button
          type="submit"
          className="button button-primary run-send"
          disabled={isEmpty || send.busy || state.can === "nothing"}
        >
          Send
        </button>
      </div>
    </form>
  );
}

function placeholderOf(state: ComposerState): string {
  if (state.can === "nothing") return "";
  return (state.can === "start" ? state.note : null) ?? "Write a message";
}
