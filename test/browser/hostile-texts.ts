import type { EntryDraft } from "../../src/session/log/entry.ts";

/** The mark on the page's window that every hostile text tries to leave. */
export const MARK = "hostileMark";

const does = `window.${MARK} = true`;

/** Texts that would run a script, request another host or break the page if they were not treated as text. */
export const HOSTILE_TEXTS: readonly string[] = [
  `<script>${does}</script>`,
  `<img src=x onerror="${does}"><svg onload="${does}"><a xlink:href="javascript:${does}"><text>svg</text></a></svg>`,
  `<iframe srcdoc="<script>parent.${MARK} = true</script>"></iframe><object data="https://evil.example/o"></object>`,
  `<style>* { display: none !important }</style><base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=https://evil.example">`,
  `[a link](javascript:${does}) [another](JaVaScRiPt:${does}) [data](data:text/html,<script>${does}</script>) [vb](vbscript:x)`,
  `<javascript:${does}> ![picture](https://evil.example/pixel.png) ![x](x" onerror="${does})`,
  `[x]: javascript:${does}\n\n[reference][x] and [^1]\n\n[^1]: <img src=x onerror=${does}>`,
  "```html\n<script>" + does + '</script>\n```\n\n```"><img src=x onerror=' + does + ">\nlanguage\n```",
  `| a | b |\n|---|---|\n| <img src=x onerror=${does}> | \`</code><script>${does}</script>\` |`,
  "\u001b[31mred\u001b[0m \u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007 \u0000\u0007\u0008 queue",
  "\u202egnp.exe\u202c invoice\u2066 isolated\u2069 \u200b\u200d\ufeff z\u0335a\u0336l\u0337g\u0338o",
  `${"> ".repeat(500)}deep ${"[".repeat(2000)}${"*".repeat(2000)}${"`".repeat(999)}`,
  "</textarea></title></style></script>--><script>" + does + "</script>",
];

/** A line of 5 MB without a line break opportunity. */
export const LONG_LINE: string = "x".repeat(5_000_000);

/** Entries with hostile texts in every field. */
export function hostileEntries(): readonly EntryDraft[] {
  const entries: EntryDraft[] = [];
  for (const [index, text] of HOSTILE_TEXTS.entries()) {
    const call = {
      id: `call_${index}`,
      name: text.slice(0, 60),
      arguments: JSON.stringify({ path: text, content: text }),
    };
    entries.push(
      { id: `user-${index}`, type: "message", message: { role: "user", content: text } },
      {
        type: "message",
        message: {
          role: "assistant",
          content: [
            { type: "thinking", text },
            { type: "text", text },
          ],
          toolCalls: [call],
          provider: "<b>provider</b>",
          model: text.slice(0, 60),
          stopReason: "tool_calls",
        },
      },
      {
        type: "message",
        message: { role: "tool", toolCallId: call.id, name: call.name, content: text, isError: index % 2 === 0 },
      },
    );
  }
  entries.push({ type: "label", targetId: "user-0", label: HOSTILE_TEXTS[0] ?? "" });
  entries.push({ type: "message", message: { role: "user", content: "The last word." } });
  return entries;
}
