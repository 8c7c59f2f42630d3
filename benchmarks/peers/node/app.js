// The bare handler in JavaScript: the client of the AWS SDK and JSON, without models.

import {
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";

const TableName = process.env.ANIMALS_TABLE;
const dynamodb = new DynamoDBClient();

export async function handler(event) {
  if (event.httpMethod === "POST") return answer(201, await create(JSON.parse(event.body)));
  if (event.pathParameters) {
    const pet = await get(event.pathParameters.petId);
    return pet ? answer(200, pet) : answer(404, { message: "no animal" });
  }
  const { limit = "20", cursor } = event.queryStringParameters ?? {};
  const [pets, link] = await query(limit, cursor);
  return answer(200, pets, link);
}

function answer(statusCode, body, headers) {
  return {
    statusCode,
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
}

async function query(limit, after) {
  const page = await dynamodb.send(
    new QueryCommand({
      TableName,
      Limit: Number(limit),
      KeyConditionExpression: "pk = :value",
      ExpressionAttributeValues: { ":value": { S: "pet" } },
      ConsistentRead: true,
      ...(after && { ExclusiveStartKey: { pk: { S: "pet" }, id: { N: after } } }),
    }),
  );
  const pets = page.Items.map(fromItem);
  if (!page.LastEvaluatedKey) return [pets];
  return [pets, { Link: `</v1/pets?limit=${limit}&cursor=${pets.at(-1).id}>; rel="next"` }];
}

async function create(pet) {
  const counter = await dynamodb.send(
    new UpdateItemCommand({
      TableName,
      Key: { pk: { S: "counter" }, id: { N: "0" } },
      UpdateExpression: "ADD #value :one",
      ExpressionAttributeNames: { "#value": "value" },
      ExpressionAttributeValues: { ":one": { N: "1" } },
      ReturnValues: "UPDATED_NEW",
    }),
  );
  const id = counter.Attributes.value.N;
  await dynamodb.send(
    new PutItemCommand({
      TableName,
      Item: {
        pk: { S: "pet" },
        id: { N: id },
        name: { S: pet.name },
        categoryId: { N: String(pet.categoryId) },
        ...(pet.status && { status: { S: pet.status } }),
      },
      ConditionExpression: "attribute_not_exists(pk)",
    }),
  );
  return { id: Number(id), ...pet };
}

async function get(id) {
  const Key = { pk: { S: "pet" }, id: { N: id } };
  const found = await dynamodb.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
  return found.Item && fromItem(found.Item);
}

function fromItem({ id, name, categoryId, status }) {
  return { id: Number(id.N), name: name.S, categoryId: Number(categoryId.N), status: status?.S };
}
