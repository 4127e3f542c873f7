import { activeBranch, type Conversation, type Message } from "./tree";

/** The branch that is shown, as a document to read. */
export function toMarkdown(conversation: Conversation): string {
  const parts = activeBranch(conversation).map(
    (message) =>
      `## ${heading(message)}\n\n${[...attachedTo(message), message.content].join("\n\n")}`,
  );
  return `# ${conversation.title || "Conversation"}\n\n${parts.join("\n\n")}\n`;
}

function attachedTo(message: Message): string[] {
  const { images = [], sounds = [] } = message.role === "user" ? message : {};
  return [
    ...images.map((image, index) => `![Picture ${index + 1}](${image})`),
    ...sounds.map((sound, index) => `[Sound ${index + 1}](${sound})`),
  ];
}

function heading(message: Message): string {
  return message.role === "user" ? "You" : message.model;
}

/** The whole tree, with every branch, figure and failure. */
export function toJson(conversation: Conversation): string {
  const { messages, ...rest } = conversation;
  return `${JSON.stringify({ ...rest, messages: Object.values(messages) }, null, 2)}\n`;
}

export function fileName(conversation: Conversation, extension: string): string {
  const words = conversation.title.toLocaleLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return `${words.slice(0, 8).join("-") || "conversation"}.${extension}`;
}

/** Hands the person a file; nothing leaves the machine. */
export function download(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has taken the file's content by the next task.
  setTimeout(() => URL.revokeObjectURL(address));
}
