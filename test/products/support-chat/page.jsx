import { useChat } from "@ai-sdk/react";
import { getToolName, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { createChatTransport } from "skein/ui";

location.hash ||= crypto.randomUUID();
const id = location.hash.slice(1);
const transport = createChatTransport();

function Chat({ before }) {
  const [text, setText] = useState("");
  const { messages, status, error, sendMessage, addToolApprovalResponse } = useChat({
    id,
    messages: before,
    transport,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const send = async (event) => {
    event.preventDefault();
    setText("");
    const response = await fetch("/my/triage", { method: "POST", body: text });
    const { agent } = await response.json();
    await sendMessage({ text }, { body: { agent } });
  };
  const show = (part, index) => {
    if (part.type === "text") return <span key={index}>{part.text}</span>;
    if (!isToolUIPart(part)) return null;
    if (part.state !== "approval-requested") return <code key={index}>{`[${getToolName(part)}: ${part.state}]`}</code>;
    const answer = (approved) => () => addToolApprovalResponse({ id: part.approval.id, approved });
    return (
      <fieldset key={index} disabled={status !== "ready"}>
        <legend>{`${getToolName(part)} ${JSON.stringify(part.input)}?`}</legend>
        <button type="button" onClick={answer(true)}>
          Yes
        </button>
        <button type="button" onClick={answer(false)}>
          No
        </button>
      </fieldset>
    );
  };
  return (
    <main>
      <ul>
        {messages.map((message) => (
          <li key={message.id}>{message.parts.map(show)}</li>
        ))}
      </ul>
      <form onSubmit={send}>
        <input aria-label="Message" value={text} onChange={({ target }) => setText(target.value)} />
        <button type="submit">Send</button>
      </form>
      <output>{error?.message ?? status}</output>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<Chat before={await transport.messages(id)} />);
