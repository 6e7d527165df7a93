// Brings the graph's schema to what schema.json says, each time the server starts, and then offers the traversal source `g`.
// What is there stays; what is missing is made. A key whose type has changed stops the start: JanusGraph can't change one.
import groovy.json.JsonSlurper
import org.apache.tinkerpop.gremlin.structure.Edge
import org.apache.tinkerpop.gremlin.structure.Vertex
import org.janusgraph.core.Cardinality
import org.janusgraph.core.Multiplicity
import org.janusgraph.core.schema.SchemaAction
import org.janusgraph.core.schema.SchemaStatus
import org.janusgraph.graphdb.database.management.ManagementSystem

class LocalSchema {
    static final TYPES = [string: String, long: Long, double: Double, bool: Boolean]

    def graph
    Map wanted

    void apply() {
        Set newKeys = []
        List newIndexes = []
        inOneChange { change ->
            newKeys = makeKeys(change)
            wanted.vertex_labels.findAll { !change.containsVertexLabel(it) }.each { change.makeVertexLabel(it).make() }
            wanted.edge_labels.findAll { !change.containsEdgeLabel(it) }.each {
                change.makeEdgeLabel(it).multiplicity(Multiplicity.MULTI).make()
            }
            newIndexes = makeIndexes(change)
        }
        // An index over keys that are as new as itself is complete at once. Any other has to read what was stored before it.
        newIndexes.findAll { name -> !wanted.indexes[name].keys.any { it in newKeys } }.each { fill(it) }
    }

    private Set makeKeys(change) {
        Set made = []
        wanted.keys.each { name, type ->
            if (!change.containsPropertyKey(name)) {
                change.makePropertyKey(name).dataType(TYPES[type]).cardinality(Cardinality.SINGLE).make()
                made << name
            } else if (change.getPropertyKey(name).dataType() != TYPES[type]) {
                def stored = change.getPropertyKey(name).dataType().simpleName
                throw new IllegalStateException("The stored key '${name}' is ${stored}, schema.json says ${type}. " +
                    "A type can't be changed: give the key another name, or start afresh with 'pulse-kg down --wipe'.")
            }
        }
        made
    }

    private List makeIndexes(change) {
        wanted.indexes.findAll { name, index -> !change.containsGraphIndex(name) }.collect { name, index ->
            def builder = change.buildIndex(name, index.of == 'edge' ? Edge : Vertex)
            index.keys.each { builder.addKey(change.getPropertyKey(it)) }
            if (index.unique) builder.unique()
            builder.buildCompositeIndex()
            name
        }
    }

    private void fill(String name) {
        ManagementSystem.awaitGraphIndexStatus(graph, name).status(SchemaStatus.REGISTERED, SchemaStatus.ENABLED).call()
        inOneChange { change -> change.updateIndex(change.getGraphIndex(name), SchemaAction.REINDEX).get() }
        ManagementSystem.awaitGraphIndexStatus(graph, name).status(SchemaStatus.ENABLED).call()
    }

    private void inOneChange(Closure work) {
        def change = graph.openManagement()
        try {
            work(change)
            change.commit()
        } catch (Throwable failure) {
            change.rollback()
            throw failure
        }
    }
}

try {
    def file = System.getProperty('pulse.schema') ?: System.getenv('PULSE_GRAPH_SCHEMA')
    new LocalSchema(graph: graph, wanted: new JsonSlurper().parse(new File(file))).apply()
} catch (Throwable failure) {
    // The server would go on without `g` and answer nothing; nobody would see why.
    System.err.println("SCHEMA: ${failure.message ?: failure}")
    graph.close()
    Runtime.runtime.halt(1)
}

def globals = [g: graph.traversal()]
