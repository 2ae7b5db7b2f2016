import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from "ai";
import { type FormEvent, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { createChatTransport } from "skein/ui";

// The chat is the hash of the URL, `#<id>`; `?stock` uses the default transport.
const id = location.hash.slice(1);
const stock = new URLSearchParams(location.search).has("stock");
const skein = createChatTransport();
const transport = stock ? new DefaultChatTransport() : skein;

function ChatPage({ before }: { readonly before: UIMessage[] }) {
  const [text, setText] = useState("");
  const [files, setFiles] = useState<FileList | null>(null);
  const { messages, status, error, sendMessage, stop, regenerate, addToolApprovalResponse } = useChat({
    id,
    messages: before,
    resume: true,
    transport,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const send = (event: FormEvent): void => {
    event.preventDefault();
    void sendMessage({ text, ...(files !== null && { files }) });
    setText("");
    setFiles(null);
  };
  return (
    <main>
      <ul>
        {messages.map((message) => (
          <li key={message.id} data-role={message.role}>
            {message.parts.map((part, index) => (
              <Part key={index} part={part} answer={addToolApprovalResponse} ready={status === "ready"} />
            ))}
          </li>
        ))}
      </ul>
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={({ target }) => setText(target.value)} />
        <input type="file" aria-label="Files" onChange={({ target }) => setFiles(target.files)} />
        <button type="submit">Send</button>
      </form>
      <button type="button" onClick={() => void stop()}>
        Stop
      </button>
      <button type="button" onClick={() => void regenerate()}>
        Again
      </button>
      <output>{error === undefined ? status : error.message}</output>
    </main>
  );
}

interface PartProps {
  readonly part: UIMessage["parts"][number];
  readonly answer: (answer: { id: string; approved: boolean }) => void;
  /** False while a chat is joined: streamed messages then replace answered ones. */
  readonly ready: boolean;
}

function Part({ part, answer, ready }: PartProps) {
  if (part.type === "text") return <span>{part.text}</span>;
  if (part.type === "reasoning") return <em>{part.text}</em>;
  if (part.type === "file") return <img alt="shown" src={part.url} />;
  if (!isToolUIPart(part)) return null;
  const name = getToolName(part);
  if (part.state !== "approval-requested") {
    return <code>{`[${name}: ${part.state === "output-available" ? String(part.output) : part.state}]`}</code>;
  }
  const { id: question } = part.approval;
  return (
    <fieldset>
      <legend>{`${name} ${JSON.stringify(part.input)}?`}</legend>
      <button type="button" disabled={!ready} onClick={() => answer({ id: question, approved: true })}>
        Approve
      </button>
      <button type="button" disabled={!ready} onClick={() => answer({ id: question, approved: false })}>
        Deny
      </button>
    </fieldset>
  );
}

const before = await skein.messages(id);
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <ChatPage before={before} />
  </StrictMode>,
);
