// The cases of the official client for Node. `node openai.mjs URL MODEL EMBEDDING_MODEL CASE`
// tries one of them and ends with 0 where it held.
import assert from "node:assert/strict";
import OpenAI from "openai";

const [baseUrl, model, embeddingModel, name] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: "any", maxRetries: 0 });

const messages = [
  { role: "user", content: "What is the capital of France? Answer briefly." },
];
const tale = [{ role: "user", content: "Tell a very long story about a river." }];
const greedy = { model, messages, temperature: 0 };
const parameters = {
  type: "object",
  properties: { town: { type: "string" } },
  required: ["town"],
  additionalProperties: false,
};
const weather = {
  type: "function",
  function: { name: "weather", description: "Tells the weather in a town.", parameters },
};
// Shows a small model how to call.
const shown = Object.entries({ Rome: "sunny", Berlin: "rainy" }).flatMap(([town, sky]) => [
  { role: "user", content: `What is the weather in ${town}?` },
  {
    role: "assistant",
    content: null,
    tool_calls: [
      {
        id: `call_${town}`,
        type: "function",
        function: { name: "weather", arguments: JSON.stringify({ town }) },
      },
    ],
  },
  { role: "tool", tool_call_id: `call_${town}`, content: sky },
  { role: "assistant", content: `It is ${sky}.` },
]);
const asksForWeather = {
  ...greedy,
  messages: [...shown, { role: "user", content: "What is the weather in Paris?" }],
  max_tokens: 100,
};

const textOf = (chunks, index = 0) =>
  chunks
    .flatMap((chunk) => chunk.choices)
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta.content ?? "")
    .join("");

async function collected(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

async function until(condition) {
  const deadline = Date.now() + 10_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, "it didn't happen in time");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function isIdle() {
  const { engines } = await (await fetch(`${baseUrl}/v1/status`)).json();
  return engines.every((engine) => engine.model !== model || engine.busy === 0);
}

const cases = {
  async an_answer_is_whole() {
    const answer = await client.chat.completions.create(greedy);
    const [choice] = answer.choices;
    assert.match(choice.message.content, /Paris/);
    assert.equal(choice.finish_reason, "stop");
    assert.equal(answer.model, model);
    const { prompt_tokens, completion_tokens, total_tokens } = answer.usage;
    assert.equal(prompt_tokens + completion_tokens, total_tokens);
  },

  async a_stream_says_what_the_whole_answer_says() {
    const whole = await client.chat.completions.create(greedy);
    const chunks = await collected(
      await client.chat.completions.create({ ...greedy, stream: true }),
    );
    assert.equal(textOf(chunks), whole.choices[0].message.content);
    assert.equal(chunks[0].choices[0].delta.role, "assistant");
    assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
  },

  async a_stream_tells_its_usage_where_it_is_asked_for() {
    const asked = { ...greedy, max_tokens: 3, stream: true };
    const plain = await collected(await client.chat.completions.create(asked));
    assert.ok(plain.every((chunk) => !chunk.usage));
    const counted = await collected(
      await client.chat.completions.create({ ...asked, stream_options: { include_usage: true } }),
    );
    assert.equal(counted.at(-1).usage.completion_tokens, 3);
    assert.deepEqual(counted.at(-1).choices, []);
  },

  async the_stream_helper_tells_text_as_it_comes() {
    const stream = client.chat.completions.stream(greedy);
    const pieces = [];
    stream.on("content", (piece) => pieces.push(piece));
    const final = await stream.finalChatCompletion();
    assert.ok(pieces.length > 2);
    assert.equal(pieces.join(""), final.choices[0].message.content);
    assert.match(await stream.finalContent(), /Paris/);
  },

  async two_choices_are_streamed_beside_each_other() {
    const asked = { ...greedy, n: 2, max_tokens: 4, stream: true };
    const chunks = await collected(await client.chat.completions.create(asked));
    for (const index of [0, 1]) assert.notEqual(textOf(chunks, index), "");
  },

  async an_answer_is_parsed_by_its_schema() {
    const properties = { capital: { type: "string", enum: ["Paris", "Rome"] } };
    const schema = {
      type: "object",
      properties,
      required: ["capital"],
      additionalProperties: false,
    };
    const answer = await client.chat.completions.parse({
      ...greedy,
      max_tokens: 60,
      response_format: {
        type: "json_schema",
        json_schema: { name: "capital", schema, strict: true },
      },
    });
    assert.deepEqual(JSON.parse(answer.choices[0].message.content), { capital: "Paris" });
  },

  async a_call_that_is_required_is_made() {
    const answer = await client.chat.completions.create({
      ...asksForWeather,
      tools: [weather],
      tool_choice: "required",
    });
    const [call] = answer.choices[0].message.tool_calls;
    assert.equal(call.function.name, "weather");
    assert.deepEqual(JSON.parse(call.function.arguments), { town: "Paris" });
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
  },

  async the_stream_helper_tells_a_call() {
    const stream = client.chat.completions.stream({
      ...asksForWeather,
      tools: [weather],
      tool_choice: "required",
    });
    const calls = [];
    stream.on("tool_calls.function.arguments.done", (call) => calls.push(call));
    const final = await stream.finalChatCompletion();
    assert.equal(calls[0].name, "weather");
    assert.equal(
      calls[0].arguments,
      final.choices[0].message.tool_calls[0].function.arguments,
    );
  },

  async the_runner_calls_a_function_and_goes_on() {
    const asked = [];
    const runner = client.chat.completions.runTools({
      ...asksForWeather,
      tools: [
        {
          ...weather,
          function: {
            ...weather.function,
            parse: JSON.parse,
            function: ({ town }) => {
              asked.push(town);
              return "foggy";
            },
          },
        },
      ],
    });
    assert.match(await runner.finalContent(), /foggy/);
    assert.deepEqual(asked, ["Paris"]);
  },

  async each_token_has_its_probability() {
    const answer = await client.chat.completions.create({
      ...greedy,
      max_tokens: 3,
      logprobs: true,
      top_logprobs: 2,
    });
    const tokens = answer.choices[0].logprobs.content;
    assert.equal(tokens.length, 3);
    assert.ok(tokens.every((token) => token.logprob <= 0 && token.top_logprobs.length === 2));
  },

  async a_completion_is_streamed() {
    const stream = await client.completions.create({
      model,
      prompt: "The capital of France is",
      temperature: 0,
      max_tokens: 6,
      stream: true,
    });
    const chunks = await collected(stream);
    assert.match(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join(""), /Paris/);
  },

  async an_embedding_is_decoded() {
    const asked = { model: embeddingModel, input: ["the cat", "the moon"] };
    const packed = await client.embeddings.create(asked);
    const plain = await client.embeddings.create({ ...asked, encoding_format: "float" });
    assert.equal(packed.data.length, 2);
    for (const [index, value] of plain.data[1].embedding.entries()) {
      assert.ok(Math.abs(packed.data[1].embedding[index] - value) < 1e-5);
    }
  },

  async a_response_is_whole() {
    const response = await client.responses.create({
      model,
      input: messages,
      temperature: 0,
    });
    assert.match(response.output_text, /Paris/);
    assert.equal(response.status, "completed");
  },

  async the_helper_makes_of_a_streamed_response_what_comes_whole() {
    const asked = { model, input: messages, temperature: 0 };
    const whole = await client.responses.create(asked);
    const stream = client.responses.stream(asked);
    const pieces = [];
    stream.on("response.output_text.delta", (event) => pieces.push(event.delta));
    const final = await stream.finalResponse();
    assert.equal(final.output_text, whole.output_text);
    assert.equal(pieces.join(""), whole.output_text);
  },

  async a_model_is_found_by_its_name() {
    const ids = (await collected(await client.models.list())).map((each) => each.id);
    assert.ok(ids.includes(model));
    assert.equal((await client.models.retrieve(model)).id, model);
  },

  async an_unknown_model_is_not_found() {
    const asking = client.chat.completions.create({ ...greedy, model: "org/nothing" });
    await assert.rejects(asking, OpenAI.NotFoundError);
  },

  async a_wrong_field_is_a_bad_request() {
    const asking = client.chat.completions.create({ ...greedy, temperature: -1 });
    await assert.rejects(asking, (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, "temperature");
      assert.equal(error.code, "invalid_request");
      return true;
    });
  },

  async a_reply_has_the_id_of_its_request() {
    const { request_id } = await client.chat.completions
      .create({ ...greedy, max_tokens: 1 })
      .withResponse();
    assert.ok(request_id);
  },

  async a_stream_that_is_aborted_frees_the_engine() {
    const stream = await client.chat.completions.create({
      ...greedy,
      messages: tale,
      max_tokens: 4000,
      stream: true,
    });
    for await (const _ of stream) {
      stream.controller.abort();
      break;
    }
    await until(isIdle);
  },

  async the_helper_that_is_aborted_says_so() {
    const stream = client.chat.completions.stream({
      ...greedy,
      messages: tale,
      max_tokens: 4000,
    });
    stream.on("content", () => stream.abort());
    await assert.rejects(stream.finalContent(), OpenAI.APIUserAbortError);
  },
};

try {
  await cases[name]();
} catch (error) {
  console.error(error);
  process.exit(1);
}
process.exit(0);
