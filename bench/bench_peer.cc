// bench_peer.cc - the same work with libprotobuf and the generated classes of ONNX.
//   bench_peer codec FILE   minimum of several rounds, in ms: decode encode
//   bench_peer open FILE    reads the file and counts nodes
#include <onnx/onnx_pb.h>

#include <google/protobuf/arena.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

using Clock = std::chrono::steady_clock;

static double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

static int codec(const std::string &bytes)
{
    double decode = -1, encode = -1;
    auto end = Clock::now() + std::chrono::seconds(2);
    for (int round = 0; round < 3 || Clock::now() < end; round++) {
        google::protobuf::Arena arena;
        auto t0 = Clock::now();
        auto *model = google::protobuf::Arena::CreateMessage<onnx::ModelProto>(&arena);
        if (!model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
            return 1;
        auto t1 = Clock::now();
        std::string out;
        if (!model->SerializeToString(&out))
            return 1;
        auto t2 = Clock::now();
        if (decode < 0 || ms(t1 - t0) < decode)
            decode = ms(t1 - t0);
        if (encode < 0 || ms(t2 - t1) < encode)
            encode = ms(t2 - t1);
    }
    std::printf("%.4f %.4f\n", decode, encode);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    std::ifstream file(argv[2], std::ios::binary);
    if (std::strcmp(argv[1], "codec") == 0) {
        std::stringstream text;
        text << file.rdbuf();
        return codec(text.str());
    }
    onnx::ModelProto model;
    if (!model.ParseFromIstream(&file))
        return 1;
    std::printf("%d nodes\n", model.graph().node_size());
    return 0;
}
