const QUESTION = "What is the capital of France?";

type Place = {
  origin: string;
  model: string;
  /** Whether the server asks for a key. */
  needsKey: boolean;
};

export function curlExample({ origin, model, needsKey }: Place): string {
  const message = JSON.stringify({ role: "user", content: QUESTION });
  return [
    `curl ${origin}/v1/chat/completions \\`,
    ...(needsKey ? [`  -H "Authorization: Bearer $ELOQUIO_API_KEY" \\`] : []),
    `  -H "Content-Type: application/json" \\`,
    `  -d '{`,
    `    "model": ${JSON.stringify(model)},`,
    `    "messages": [${message}]`,
    `  }'`,
  ].join("\n");
}

export function pythonExample({ origin, model, needsKey }: Place): string {
  const key = needsKey ? `os.environ["ELOQUIO_API_KEY"]` : `"not-needed"`;
  return `${needsKey ? "import os\n\n" : ""}from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=${key})
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "${QUESTION}"}],
)
print(answer.choices[0].message.content)`;
}
