import { GetItemCommand, ProvisionedThroughputExceededException, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { deleteTable, uniqueTableName } from '../../src/helpers.js'
import { create, fill, once, untilRefused } from './once.js'

// Burst capacity: a table keeps up to 300 seconds of unused capacity, reads and
// writes apart (documentation, developer guide, "Burst and adaptive capacity").
// That a new table has it from the start, and that a write above the capacity
// of a second is served from it, was seen on DynamoDB: this suite's own writes
// of nearly 400 KB to a table of 5 write units were served while the table was
// new, and throttled with ProvisionedThroughputExceededException once the burst
// was spent (paritysuite/dynamodb-conformance#43, 2026-06-19).
const UNITS = 5
const KILOBYTES = 390
const full = UNITS * 300
const name = uniqueTableName('cap_burst')
const put = (number: number) =>
  once.send(new PutItemCommand({ TableName: name, Item: { pk: { S: `${number}` }, fill: fill(KILOBYTES) } }))

beforeAll(async () => {
  await create({
    TableName: name,
    ProvisionedThroughput: { ReadCapacityUnits: UNITS, WriteCapacityUnits: UNITS },
  })
})

afterAll(async () => {
  await deleteTable(name)
})

describe('Burst capacity', () => {
  it('a new table serves a write of many times its capacity a second, and throttles once the burst is spent', async () => {
    const began = Date.now()
    const { served, error } = await untilRefused(put, 20)
    // seen on DynamoDB
    expect(served).toBeGreaterThanOrEqual(1)
    expect(error).toBeInstanceOf(ProvisionedThroughputExceededException)
    // documentation: what a full bucket holds is served, less what DynamoDB
    // itself may use of it. A clock that runs faster than real time adds more
    expect(served).toBeGreaterThanOrEqual(Math.floor(full / KILOBYTES) - 1)
    const mostSeconds = ((Date.now() - began) / 1000) * 60
    expect(served * KILOBYTES).toBeLessThanOrEqual(full + UNITS * (mostSeconds + 1) + KILOBYTES)
  })

  it('reads have a burst of their own', async () => {
    // source: documentation. The writes are throttled now; a read of 98 units is not
    await untilRefused(put, 20)
    const got = await once.send(new GetItemCommand({ TableName: name, Key: { pk: { S: '0' } }, ConsistentRead: true }))
    expect(got.Item?.pk).toEqual({ S: '0' })
  })
})
