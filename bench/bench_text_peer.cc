// bench_text_peer.cc - the same with the reference library: bench_text_peer MODEL TEXT SAME_MODEL
// Prints the graph of MODEL to TEXT, parses that text, and writes the parsed model to SAME_MODEL: the text of this
// version omits weights and node names, so SAME_MODEL gives both libraries the same work.
#include <onnx/defs/parser.h>
#include <onnx/defs/printer.h>
#include <onnx/onnx_pb.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <time.h>

static double now()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    std::ifstream file(argv[1], std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    onnx::ModelProto model;
    if (!model.ParseFromString(bytes.str()))
        return 1;
    double print = 1e30, parse = 1e30;
    std::string text;
    for (int round = 0; round < 9; round++) {
        double start = now();
        std::ostringstream out;
        out << model.graph();
        text = out.str();
        print = std::min(print, now() - start);
        start = now();
        onnx::GraphProto graph;
        onnx::OnnxParser parser(text.c_str());
        if (!parser.Parse(graph).IsOK())
            return 1;
        parse = std::min(parse, now() - start);
        if (round == 0)
            model.mutable_graph()->Swap(&graph); // later rounds print what the text carries
    }
    std::ofstream(argv[2]) << text;
    std::string same = model.SerializeAsString();
    std::ofstream(argv[3], std::ios::binary) << same;
    std::printf("%.3f %.3f\n", print, parse);
    return 0;
}
